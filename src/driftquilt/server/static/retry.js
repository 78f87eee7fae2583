// Asking again: at first soon, then ever later, and at once when the browser is online again.

const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;
const PASSING = [408, 429]; // of those that are otherwise the asker's own fault

/** Waits, until the signal or until the browser is online again. */
export const pause = (wait, signal) => new Promise((resolve) => {
  if (signal.aborted) { resolve(); return; }
  const ended = new AbortController();
  const end = () => { clearTimeout(timer); ended.abort(); resolve(); };
  const timer = setTimeout(end, wait);
  addEventListener("online", end, { signal: ended.signal });
  signal.addEventListener("abort", end, { signal: ended.signal });
});

/** A wait that is longer each time; `restart` makes the next one short. */
export const waiting = (signal) => {
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

/** Whether asking again would get the same answer. */
export const isFinal = ({ status }) => status >= 400 && status < 500 && !PASSING.includes(status);

/**
 * What `work` returns, however often it has to be tried; `onTrouble(error)` is told of the first
 * failure. Throws what is final, and whatever comes after the signal.
 */
export const persist = async (work, signal, onTrouble) => {
  const wait = waiting(signal);
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || error.status === undefined || isFinal(error)) throw error;
      if (isFirst) onTrouble(error);
      await wait.next();
      if (signal.aborted) throw error;
    }
  }
};
