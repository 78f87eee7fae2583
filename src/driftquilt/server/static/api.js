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

const problemOf = async (answer) => {
  const kind = answer.headers.get("content-type") ?? "";
  const body = kind.includes("json") ? await answer.json() : {};
  const known = body.detail ?? body.title;
  return new Problem(answer.status, known ?? `the service answered with status ${answer.status}`);
};

/** The answer as it comes; anything but success is a Problem. */
export const request = async (path, options = {}) => {
  const held = token.get();
  const headers = { ...options.headers, ...(held && { Authorization: `Bearer ${held}` }) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Problem(0, "the service does not answer; the page tries again by itself");
  }
  if (answer.ok) return answer;
  const problem = await problemOf(answer);
  if (answer.status === 401) onLogIn(problem);
  throw problem;
};

export const ask = async (path, signal) => (await request(path, { signal })).json();

export const post = async (path) => (await request(path, { method: "POST" })).json();

export const streamPath = (name, ...rest) =>
  ["/v1/streams", encodeURIComponent(name), ...rest].join("/");
