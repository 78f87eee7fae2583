"use strict";
// The lines, drawn by plotly: accuracy over time, and the scores of the drift that is chosen.

const makeCharts = (data, state) => {
  const at = (id) => document.getElementById(id);
  const paperWidth = 660; // A4 and Letter have a little more between their margins

  // Plotly reads some tags in its texts; a name is never meant as one.
  const plain = (text) =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const cut = (text, most) =>
    plain(text.length <= most ? text : text.slice(0, most - 1) + "…");
  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const methodColours = ["accent", "m1", "m2", "m3", "m4", "m5"];

  const title = (text) => ({ text, standoff: 8, font: { size: 12, color: colour("faint") } });

  const axis = (more) => ({
    gridcolor: colour("line"), linecolor: colour("edge"), zeroline: false, automargin: true,
    tickfont: { color: colour("faint") }, fixedrange: true, ...more,
  });

  const layout = (more) => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("ink") },
    margin: { l: 44, r: 12, t: 28, b: 44 },
    hoverlabel: {
      bgcolor: colour("ink"), bordercolor: colour("ink"),
      font: { color: colour("paper"), size: 12 }, namelength: 40,
    },
    legend: { orientation: "h", x: 0, y: -0.16, yanchor: "top" },
    ...more,
  });

  const widthOf = (place) => (state.printing ? paperWidth : place.clientWidth);

  const draw = (place, traces, made) =>
    Plotly.react(place, traces, { ...made, width: widthOf(place) }, { displayModeBar: false });

  const driftMark = (x, chosen) => ({
    type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, layer: "below",
    line: chosen
      ? { color: colour("accent"), width: 2, dash: "dot" }
      : { color: colour("faint"), width: 1.5, dash: "dot" },
  });

  const accuracyLine = (name, number, lines) => ({
    name: cut(name, 28), x: lines.x, y: lines.lines[name], type: "scatter",
    mode: lines.over === "row" ? "lines" : "lines+markers",
    line: { color: colour(methodColours[number % 6]), width: number ? 1.6 : 2.8 },
    marker: { size: number ? 6 : 8 },
    hovertemplate: "%{y:.3f}",
  });

  // Every drift lies inside of the axis, also one before the first window or after the last.
  const rowRange = (lines) => {
    const drifts = lines.marks.map(([, row]) => row);
    const first = Math.min(lines.x[0], ...drifts.slice(0, 1));
    const last = Math.max(lines.x.at(-1), ...drifts.slice(-1));
    const margin = 0.02 * Math.max(last - first, 1);
    return [first - margin, last + margin];
  };

  const accuracyAxis = (lines) => {
    if (lines.over === "row") {
      return axis({ title: title("row"), tickformat: ",d", range: rowRange(lines) });
    }
    const letters = Math.min(Math.max(...lines.labels.map((label) => label.length)), 14);
    const room = widthOf(at("accuracy-chart")) / (letters * 8 + 16);
    const step = Math.ceil(lines.x.length / Math.max(room, 1));
    const shown = lines.x.filter((x) => x % step === 0);
    return axis({
      tickvals: shown, ticktext: shown.map((x) => cut(lines.labels[x], 14)),
      range: [-0.4, lines.x.length - 0.6],
    });
  };

  const drawAccuracy = () => {
    const lines = data.accuracy;
    if (!lines) return;
    const traces = Object.keys(lines.lines).map((name, k) => accuracyLine(name, k, lines));
    const marks = lines.over === "row" ? lines.marks : lines.x.map((x) => [x, x]);
    const shown = lines.over === "row" ? marks : marks.filter(([k]) => k === state.drift);
    draw(at("accuracy-chart"), traces.reverse(), layout({
      height: 380, hovermode: "x unified", showlegend: true, xaxis: accuracyAxis(lines),
      yaxis: axis({ tickformat: ".2f" }),
      shapes: shown.map(([k, x]) => driftMark(x, k === state.drift)),
      legend: { orientation: "h", x: 0, y: -0.22, yanchor: "top", traceorder: "reversed" },
      hoverlabel: {
        bgcolor: colour("paper"), bordercolor: colour("edge"),
        font: { color: colour("ink"), size: 12 },
      },
    }));
  };

  const scoreLines = (drift, fold, score, axes) => {
    let kept = 0;
    return drift.segments.map((segment, s) => {
      const ink = segment.kept ? colour(methodColours[kept % 6]) : colour("edge");
      if (segment.kept) kept += 1;
      return {
        name: cut(segment.name, 28), ...axes, type: "scatter", mode: "lines",
        x: fold.epochs,
        y: fold[score].lines[s].map((value) => value === null ? null : value * fold[score].unit),
        line: { color: ink, width: segment.kept ? 2.2 : 1.2 },
        legendgroup: "s" + s, showlegend: segment.kept && score === "disparity",
        hovertemplate: "%{y:.3f}",
      };
    });
  };

  const drawScores = () => {
    const drift = data.drifts[state.drift];
    if (!drift) return;
    const isMean = state.fold === "mean";
    const fold = isMean ? drift.mean : drift.folds[state.fold];
    at("scores").hidden = !fold;
    if (!fold) return;
    const several = drift.folds.length > 1;
    at("scores-of").textContent = !several ? "" : isMean
      ? "Lines and bound are means over folds; each fold has its own, which it was held against."
      : `Lines and bound are those of fold ${Number(state.fold) + 1}.`;
    const boundOf = !several ? "bound" : isMean ? "mean bound" : `bound of fold ${Number(state.fold) + 1}`;
    const place = at("score-chart");
    const wide = widthOf(place) >= 640;
    const traces = [
      ...scoreLines(drift, fold, "disparity", { xaxis: "x", yaxis: "y" }),
      ...scoreLines(drift, fold, "gain", { xaxis: "x2", yaxis: "y2" }),
    ];
    // Those that were kept are drawn above the others.
    traces.sort((a, b) => a.line.width - b.line.width);
    const flat = (yref, xref, y) => ({
      type: "line", xref: xref + " domain", yref, x0: 0, x1: 1, y0: y, y1: y,
      line: { color: colour("ink"), width: 1.5, dash: "dash" },
    });
    const note = (xref, yref, y, text, more) => ({
      xref: xref + " domain", yref, x: 1, xanchor: "right", y, yanchor: "bottom", text,
      showarrow: false, font: { color: colour("ink"), size: 12 }, ...more,
    });
    const heading = (xref, yref, text) => ({
      xref: xref + " domain", yref: yref + " domain", x: 0, y: 1, xanchor: "left",
      yanchor: "bottom", yshift: 8, text, showarrow: false, font: { color: colour("faint"), size: 13 },
    });
    draw(place, traces, layout({
      height: wide ? 400 : 640, hovermode: "closest", showlegend: true,
      xaxis: axis({ domain: wide ? [0, 0.46] : [0, 1], title: title("epoch"), anchor: "y" }),
      xaxis2: axis({ domain: wide ? [0.54, 1] : [0, 1], title: title("epoch"), anchor: "y2" }),
      yaxis: axis({ domain: wide ? [0, 1] : [0.58, 1], rangemode: "tozero" }),
      yaxis2: axis({ domain: wide ? [0, 1] : [0, 0.4], anchor: "x2" }),
      shapes: [flat("y", "x", fold.bound), flat("y2", "x2", 0)],
      annotations: [
        heading("x", "y", "disparity"), heading("x2", "y2", "gain"),
        note("x", "y", fold.bound, `${boundOf} ${fold.bound.toFixed(3)}`),
      ],
      legend: { orientation: "h", x: 0, y: wide ? -0.2 : -0.13, yanchor: "top" },
      margin: { l: 44, r: 12, t: 34, b: 44 },
    }));
  };

  return { drawAccuracy, drawScores };
};
