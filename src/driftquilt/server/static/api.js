// Questions to the service. The token is kept for this tab alone, and ends with it.

import { sentence } from "./words.js";

const KEY = "driftquilt-token";

/** What the service refused, or that it could not be reached (status 0), as a sentence. */
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

/** Who is told when the service wants another token. */
export const whenLoggedOut = (listener) => { onLogIn = listener; };

// A fault of the service's own needs its title, which says what cannot be done.
const wordsOf = ({ title, detail }, status) => {
  if (title && detail && status >= 500) return `${title}: ${detail}`;
  return detail ?? title ?? `the service answered with status ${status}`;
};

const problemOf = async (answer) => {
  const body = await answer.json().catch(() => ({})); // a proxy may answer with a page
  return new Problem(answer.status, wordsOf(body, answer.status));
};

// What the network does; that the reader has gone on is no problem.
const overNetwork = async (work, signal) => {
  try {
    return await work();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, "the service does not answer");
  }
};

/** The answer as it comes; anything but success is a Problem. */
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

const answered = async (path, options) => {
  const answer = await request(path, options);
  return overNetwork(() => answer.json(), options.signal);
};

export const ask = (path, signal) => answered(path, { signal });

export const post = (path) => answered(path, { method: "POST" });

export const streamPath = (name, ...rest) =>
  ["/v1/streams", encodeURIComponent(name), ...rest].join("/");
