// Events as they happen, over fetch, since EventSource cannot send a token.
//
// A connection that ends, or says nothing for a while, is made again, at first soon, then ever
// later; it goes on after the last event that came.

import { request } from "./api.js";

const SILENCE = 45_000; // the service says something every 15 s
const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;

/** Splits text that arrives in pieces into messages {id, event, data}. */
export const messageReader = (onMessage) => {
  let rest = "";
  let message = {};
  const endMessage = () => {
    if (message.data !== undefined) onMessage(message);
    message = {};
  };
  const readLine = (line) => {
    if (line === "") return endMessage();
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (field === "data") message.data = message.data === undefined ? value : `${message.data}\n${value}`;
    else if (field === "id" || field === "event") message[field] = value;
    return undefined;
  };
  return (text) => {
    const lines = (rest + text).split(/\r?\n/);
    rest = lines.pop();
    lines.forEach(readLine);
  };
};

const pause = (wait, signal) => new Promise((resolve) => {
  const ended = new AbortController();
  const end = () => { clearTimeout(timer); ended.abort(); resolve(); };
  const timer = setTimeout(end, wait);
  addEventListener("online", end, { signal: ended.signal });
  signal.addEventListener("abort", end, { signal: ended.signal });
});

// One connection, until it ends; throws when it is refused or breaks.
const listenOnce = async (path, last, signal, { onOpen, onMessage }) => {
  const silence = new AbortController();
  const either = AbortSignal.any([signal, silence.signal]);
  const restart = (timer) => {
    clearTimeout(timer);
    return setTimeout(() => silence.abort(), SILENCE);
  };
  let timer = restart();
  try {
    const headers = { Accept: "text/event-stream", "Last-Event-ID": String(last()) };
    const answer = await request(path, { headers, signal: either });
    onOpen();
    const read = messageReader(onMessage);
    const pieces = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let piece = await pieces.read(); !piece.done; piece = await pieces.read()) {
      timer = restart(timer);
      read(piece.value);
    }
  } finally {
    clearTimeout(timer);
  }
};

const isFinal = (error) => error.status >= 400 && error.status < 500 && error.status !== 429;

/**
 * Listens until the signal; `onEvent(kind, data)` gets each event once, `onState` whether it is
 * "live" or "reconnecting", `onEnd` why it gave up: refused, or the stream is gone.
 */
export const listen = async (path, after, signal, { onEvent, onState, onEnd }) => {
  let last = after;
  let wait = FIRST_WAIT;
  const onMessage = ({ id, event, data }) => {
    wait = FIRST_WAIT;
    if (id !== undefined) last = Number(id);
    try {
      onEvent(event, JSON.parse(data));
    } catch (error) {
      reportError(error); // the page's own fault: no reason to connect again
    }
  };
  const onOpen = () => onState("live");
  while (!signal.aborted) {
    try {
      await listenOnce(path, () => last, signal, { onOpen, onMessage });
    } catch (error) {
      if (signal.aborted) return;
      if (isFinal(error)) { onEnd(error); return; }
    }
    if (signal.aborted) return;
    onState("reconnecting");
    await pause(wait * (0.75 + Math.random() / 2), signal);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
};

/**
 * A function that may be called at any rate: it runs `work` at most every so many milliseconds,
 * never twice at a time, and always once after the last call.
 */
export const paced = (work, wait, signal) => {
  let wanted = false;
  let running = false;
  const run = async () => {
    if (running || signal.aborted) return;
    running = true;
    try {
      while (wanted && !signal.aborted) {
        wanted = false;
        await work();
        await pause(wait, signal);
      }
    } finally {
      running = false;
    }
  };
  return () => { wanted = true; run(); };
};
