// Requests to the service, tried again where that may help. The token is kept for this tab alone.

import { sentence } from "./words.js";

const KEY = "driftquilt-token";

/** What the service refused, or that it cannot be reached (status 0), as a sentence. */
export class Problem extends Error {
  constructor(status, text) {
    super(sentence(text));
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
  /** Whether a header can carry it. */
  isPlain: (value) => /^[\x21-\x7e]+$/.test(value),
};

let onLogIn = () => {};

/** Sets who is called when the service asks for another token. */
export const whenLoggedOut = (listener) => { onLogIn = listener; };

// An internal error needs its title, which says what cannot be done.
const wordsOf = ({ title, detail }, status) => {
  if (title && detail && status >= 500) return `${title}: ${detail}`;
  return detail ?? title ?? `the service answered with status ${status}`;
};

const problemOf = async (answer) => {
  const body = await answer.json().catch(() => ({})); // a proxy may answer with a page
  return new Problem(answer.status, wordsOf(body, answer.status));
};

// A failure of the network is a problem, unless the reader has left the view.
const overNetwork = async (work, signal) => {
  try {
    return await work();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, "the service does not answer");
  }
};

/** The response; anything but success is a Problem. */
export const request = async (path, options = {}) => {
  const held = token.get();
  const headers = { ...options.headers, ...(held && { Authorization: `Bearer ${held}` }) };
  const answer = await overNetwork(
    () => fetch(path, { ...options, headers, cache: "no-store" }), options.signal);
  if (answer.ok) return answer;
  const problem = await problemOf(answer);
  if (answer.status === 401) onLogIn(problem);
  throw problem;
};

const readJson = async (path, options) => {
  const answer = await request(path, options);
  return overNetwork(() => answer.json(), options.signal);
};

export const ask = (path, signal) => readJson(path, { signal });

export const post = (path) => readJson(path, { method: "POST" });

/** A drawing as an SVG element; an empty one if there is nothing to draw. */
export const askDrawing = async (path, signal) => {
  const answer = await request(path, { signal });
  const text = await overNetwork(() => answer.text(), signal);
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  return document.importNode(parsed.documentElement, true);
};

export const streamPath = (name, ...rest) =>
  ["/v1/streams", encodeURIComponent(name), ...rest].join("/");

// Trying again: soon at first, then less and less often, and at once when the browser is online again.

const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;
const TEMPORARY = [408, 429]; // among the statuses that blame the request

/** Waits, until the signal or until the browser is online again. */
export const pause = (wait, signal) => new Promise((resolve) => {
  if (signal.aborted) { resolve(); return; }
  const ended = new AbortController();
  const end = () => { clearTimeout(timer); ended.abort(); resolve(); };
  const timer = setTimeout(end, wait);
  addEventListener("online", end, { signal: ended.signal });
  signal.addEventListener("abort", end, { signal: ended.signal });
});

/** Waits that get longer each time; `restart` makes the next one short. */
export const backoff = (signal) => {
  let wait = FIRST_WAIT;
  return {
    restart: () => { wait = FIRST_WAIT; },
    next: () => {
      const now = wait * (0.75 + Math.random() / 2); // not everyone at the same moment
      wait = Math.min(wait * 2, LONGEST_WAIT);
      return pause(now, signal);
    },
  };
};

/** Whether the same request would fail again. */
export const isFinal = ({ status }) => status >= 400 && status < 500 && !TEMPORARY.includes(status);

/**
 * What `task` returns, however often it has to be tried; `onProblem(error)` gets the first failure.
 * Throws what is final, and everything after the signal.
 */
export const retry = async (task, signal, onProblem) => {
  const wait = backoff(signal);
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await task();
    } catch (error) {
      if (signal.aborted || error.status === undefined || isFinal(error)) throw error;
      if (isFirst) onProblem(error);
      await wait.next();
      if (signal.aborted) throw error;
    }
  }
};
