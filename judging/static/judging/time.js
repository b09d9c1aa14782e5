// Active time: counted only while the page is visible and somebody is there. What the session was like
// is kept in sessionStorage, so that loading the page anew does not begin a new session.
"use strict";

touchstone.openClock = ({ name, shownToken, isReading }) => {
  const IDLE_MS = 60000; // after this long without a sign of life, time is not counted as work
  const READING_MS = 120000; // but scrolling inside the document sends us nothing
  const active = new Map(); // token -> milliseconds
  let countedUntil = performance.now();
  let lastSign = performance.now();
  let wasVisible = !document.hidden;
  const session = { times: [], active: 0, reminded: false };

  try {
    Object.assign(session, JSON.parse(sessionStorage.getItem(name)));
  } catch { /* a new session */ }

  function keep() {
    try {
      sessionStorage.setItem(name, JSON.stringify(session));
    } catch { /* lives as long as the page */ }
  }

  function count(isSign) {
    const now = performance.now();
    const token = shownToken();
    const end = Math.min(now, lastSign + (isReading() ? READING_MS : IDLE_MS));
    if (wasVisible && token && end > countedUntil) {
      const more = end - countedUntil;
      active.set(token, (active.get(token) || 0) + more);
      session.active += more;
    }
    countedUntil = now;
    wasVisible = !document.hidden;
    if (isSign) lastSign = now;
    if (document.hidden) keep();
  }

  for (const event of ["pointermove", "pointerdown", "keydown", "wheel", "scroll", "touchstart", "focus"]) {
    window.addEventListener(event, () => count(true), { passive: true, capture: true });
  }
  document.addEventListener("visibilitychange", () => count(!document.hidden));
  window.addEventListener("pagehide", () => { count(false); keep(); });

  function median(numbers) {
    const sorted = [...numbers].sort((a, b) => a - b);
    const middle = sorted.length / 2;
    return sorted.length % 2 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2;
  }

  return {
    count,
    lastSign: () => lastSign,
    of: (token) => Math.round(active.get(token) || 0),
    forget: (token) => active.delete(token),
    judged(token) {
      session.times.push([token, active.get(token) || 0]);
      keep();
    },
    refused(token) {
      session.times = session.times.filter(([judged]) => judged !== token);
      keep();
    },
    summary() {
      const times = session.times.map(([, milliseconds]) => milliseconds);
      return { judged: times.length, minutes: session.active / 60000, seconds: times.length ? median(times) / 1000 : null };
    },
    // True once a session: when so many minutes of work are over.
    isTimeForBreak(minutes) {
      if (!minutes || session.reminded || session.active < minutes * 60000) return false;
      session.reminded = true;
      keep();
      return true;
    },
  };
};
