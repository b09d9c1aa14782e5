// The documents on the screen: one frame shown, the next one loaded ahead, the last one kept for Undo.
// A frame is a sandbox without scripts and of no origin: nothing tells us where it is scrolled. But we may
// send it to an anchor of its own, which neither loads it anew nor adds to the browser's history.
"use strict";

touchstone.openFrames = (place, { queryOf, isOffline }) => {
  const frames = new Map(); // token -> iframe
  const steps = new Map(); // token -> the anchor it was sent to
  const STEPS_A_SCREEN = 9; // anchors stand a tenth of a screen apart: a screen down leaves a tenth to hold on to
  let shown = "";

  // A new element for each document: changing src would add to the history, and the browser's back
  // button would then walk through documents.
  function make(item) {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "");
    frame.title = touchstone.say("document");
    frame.dataset.token = item.token;
    frame.className = "loading";
    frame.addEventListener("load", () => frame.classList.remove("loading"));
    frame.src = item.document.frame_url + queryOf();
    if (isOffline()) frame.dataset.doubtful = "true";
    place.append(frame);
    return frame;
  }

  function drop(token) {
    frames.get(token).remove();
    frames.delete(token);
    steps.delete(token);
  }

  return {
    // Show the first item; keep the others loaded behind it.
    show(item, others) {
      const wanted = new Map([item, ...others].filter(Boolean).map((one) => [one.token, one]));
      for (const token of [...frames.keys()]) if (!wanted.has(token)) drop(token);
      for (const [token, one] of wanted) if (!frames.has(token)) frames.set(token, make(one));
      shown = item ? item.token : "";
      for (const [token, frame] of frames) frame.classList.toggle("ahead", token !== shown);
    },
    // Frames are made anew by the next show(): those that were asked for without a connection, or all.
    renewDoubtful() {
      const doubtful = [...frames].filter(([, frame]) => frame.dataset.doubtful);
      doubtful.forEach(([token]) => drop(token));
      return doubtful.length > 0;
    },
    renewAll: () => [...frames.keys()].forEach(drop),
    scroll(screens) {
      const frame = frames.get(shown);
      if (!frame) return;
      const step = Number.isFinite(screens) ? Math.max(0, (steps.get(shown) || 0) + Math.round(screens * STEPS_A_SCREEN)) : 0;
      steps.set(shown, step);
      frame.contentWindow.location.replace(`${frame.src}#${step ? `s${step}` : "top"}`);
    },
  };
};
