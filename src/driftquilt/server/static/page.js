// The page: who is there, which view is open, and what happens when something goes wrong.

import { ask, Problem, token, whenLoggedOut } from "./api.js";
import { closeDialogs } from "./dialogs.js";
import { at, make } from "./elements.js";
import { complain, forgetProblems, stopComplaining } from "./notices.js";
import { showOverview } from "./overview.js";
import { persist } from "./retry.js";
import { showStream } from "./stream.js";
import { hideTip } from "./tip.js";

const RANKS = ["read", "write", "admin"];
let me = null;
let view = new AbortController();
let hasMoved = false;

const guarded = async (run, work, signal) => {
  try {
    const answer = await run();
    if (!signal.aborted) stopComplaining(work);
    return answer;
  } catch (error) {
    if (signal.aborted) return undefined;
    if (!(error instanceof Problem)) throw error;
    complain(error.message, work);
    return undefined;
  }
};

/** What the views share. */
const app = {
  /** Whether the reader has a scope, or one that implies it. */
  may: (scope) => RANKS.slice(RANKS.indexOf(scope)).some((name) => me.scopes.includes(name)),
  /** Asks for what is shown, again and again if need be; what it got, or nothing if that is
   *  refused for good. A problem is told once, and gone with the next success. */
  watched: (work, signal) => guarded(() => persist(work, signal, (problem) =>
    complain(`${problem.message} The page tries again by itself.`, work)), work, signal),
  /** Does what the reader wanted; a problem stays until the next try. */
  tried: (work, signal) => {
    stopComplaining("tried");
    return guarded(work, "tried", signal);
  },
  /** A view's heading gets the focus, except on the first view, which nobody came to by a link. */
  arrive: (heading) => { if (hasMoved) heading.focus(); },
};

const openView = () => {
  view.abort();
  view = new AbortController();
  closeDialogs();
  hideTip();
  forgetProblems();
  return view.signal;
};

const logIn = async (value, problem) => {
  if (!token.isPlain(value)) {
    problem.textContent = "That is not a token: it has signs that no token has.";
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
    "Whoever runs the service makes tokens with driftquilt token create. "
    + "It is kept in this tab alone, until the tab is closed.")));
  field.focus();
};

const route = () => {
  if (me === null) return;
  const signal = openView();
  const found = /^#\/streams\/([a-z0-9][a-z0-9_-]*)$/.exec(location.hash);
  const name = found?.[1];
  document.title = name ? `${name} · driftquilt` : "driftquilt";
  at("main").replaceChildren();
  if (name) showStream(at("main"), name, app, signal);
  else showOverview(at("main"), app, signal);
};

const start = async () => {
  const held = token.get();
  const signal = openView();
  const found = await app.watched(() => ask("/v1/me", signal), signal);
  if (!found) return;
  me = found;
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
