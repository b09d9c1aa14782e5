// Keeps the documents of whoever sits at the screen: every third of a lease, if there was a sign of life.
"use strict";

touchstone.openHeartbeat = ({ clock, send, tokens, onLost }) => {
  let period = Infinity;
  let timer = 0;
  let last = performance.now();

  async function beat() {
    const held = tokens();
    if (!held.length || clock.lastSign() < last) return;
    last = performance.now();
    const { data } = await send(held);
    if (!data) return; // no connection: the next judgment or heartbeat will tell
    const lost = held.filter((token) => !data.held.includes(token));
    if (lost.length) onLost(lost);
  }

  return {
    // The server has just given or renewed what we hold.
    renewed(leaseSeconds) {
      clearInterval(timer);
      period = (leaseSeconds * 1000) / 3;
      last = performance.now();
      timer = setInterval(beat, period);
    },
    // Somebody is back, perhaps after long.
    catchUp() {
      if (performance.now() - last > period) beat();
    },
  };
};
