// The page: the log-in, which view is open, and what happens when something fails.

import { closeDialogs } from "./dialogs.js";
import { hideTip } from "./drawings.js";
import { at, clearProblem, clearProblems, make, showProblem } from "./elements.js";
import { showOverview } from "./overview.js";
import { ask, Problem, retry, token, whenLoggedOut } from "./service.js";
import { showStream } from "./stream.js";

const RANKS = ["read", "write", "admin"];
let me = null;
let view = new AbortController();
let hasMoved = false;

const guarded = async (run, task, signal) => {
  try {
    const answer = await run();
    if (!signal.aborted) clearProblem(task);
    return answer;
  } catch (error) {
    if (signal.aborted) return undefined;
    if (!(error instanceof Problem)) throw error;
    showProblem(error.message, task);
    return undefined;
  }
};

/** What the views share. */
const app = {
  /** Whether the reader has a scope, or one that implies it. */
  may: (scope) => RANKS.slice(RANKS.indexOf(scope)).some((name) => me.scopes.includes(name)),
  /** Runs a task that loads what is shown, again and again if need be; returns nothing if the
   *  service refuses for good. A problem is shown once, until the next success. */
  watched: (task, signal) => guarded(() => retry(task, signal, (problem) =>
    showProblem(`${problem.message} The page tries again by itself.`, task)), task, signal),
  /** Runs what the reader asked for; a problem stays until the next try. */
  tried: (task, signal) => {
    clearProblem("tried");
    return guarded(task, "tried", signal);
  },
  /** Focuses the heading of a view, except that of the first, which no link led to. */
  arrive: (heading) => { if (hasMoved) heading.focus(); },
};

const openView = () => {
  view.abort();
  view = new AbortController();
  closeDialogs();
  hideTip();
  clearProblems();
  return view.signal;
};

const logIn = async (value, problem) => {
  if (!token.isPlain(value)) {
    problem.textContent = "That is not a token: it has characters that no token has.";
    return;
  }
  token.set(value);
  await start();
};

const showLogIn = (words) => {
  openView();
  me = null;
  document.title = "Log in · driftquilt";
  at("log-out").hidden = true;
  at("who").textContent = "";
  const problem = make("p", { class: "failure", id: "log-in-problem", role: "alert" }, words);
  const field = make("input", {
    id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true,
    "aria-describedby": "log-in-note log-in-problem",
  });
  at("main").replaceChildren(make("form", {
    class: "log-in", onsubmit: (event) => { event.preventDefault(); logIn(field.value.trim(), problem); },
  },
  make("h1", {}, "Log in"),
  make("label", { for: "token" }, "Token"), field,
  make("button", { type: "submit", class: "strong" }, "Log in"), problem,
  make("p", { class: "note", id: "log-in-note" },
    "The operator of the service creates tokens with driftquilt token create. "
    + "This tab keeps it until it is closed.")));
  field.focus();
};

const route = () => {
  if (me === null) return;
  const signal = openView();
  const match = /^#\/streams\/([a-z0-9][a-z0-9_-]*)$/.exec(location.hash);
  const name = match?.[1];
  document.title = name ? `${name} · driftquilt` : "driftquilt";
  at("main").replaceChildren();
  if (name) showStream(at("main"), name, app, signal);
  else showOverview(at("main"), app, signal);
};

const start = async () => {
  const held = token.get();
  const signal = openView();
  const caller = await app.watched(() => ask("/v1/me", signal), signal);
  if (!caller) return;
  me = caller;
  at("who").textContent = me.name ?? "";
  at("log-out").hidden = held === null;
  route();
};

whenLoggedOut((problem) => {
  const held = token.get() !== null;
  token.forget();
  showLogIn(held ? problem.message : "");
});
at("log-out").addEventListener("click", () => { token.forget(); showLogIn(""); });
at("skip").addEventListener("click", (event) => { event.preventDefault(); at("main").focus(); });
addEventListener("hashchange", () => {
  hasMoved = true;
  route();
  window.scrollTo(0, 0);
});
start();
