// Events as they happen, over fetch, since EventSource cannot send a token.
//
// A connection that ends, or is silent for a while, is made again and resumes after the last event.

import { backoff, isFinal, pause, request } from "./service.js";

const SILENCE = 45_000; // the service sends something every 15 s

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

/**
 * Listens until the signal; `onEvent(kind, data)` gets each event once, `onState` whether it is
 * "live" or "reconnecting", `onEnd` why it gave up: refused, or the stream is gone.
 */
export const listen = async (path, after, signal, { onEvent, onState, onEnd }) => {
  let last = after;
  const wait = backoff(signal);
  const onMessage = ({ id, event, data }) => {
    wait.restart();
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
    await wait.next();
  }
};

/**
 * A function that may be called at any rate: it runs `task` at most every so many milliseconds,
 * never twice at a time, and always once after the last call.
 */
export const throttled = (task, wait, signal) => {
  let wanted = false;
  let running = false;
  const run = async () => {
    if (running || signal.aborted) return;
    running = true;
    try {
      while (wanted && !signal.aborted) {
        wanted = false;
        await task();
        await pause(wait, signal);
      }
    } finally {
      running = false;
    }
  };
  return () => { wanted = true; run(); };
};
