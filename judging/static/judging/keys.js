// The keyboard: which key asks for what, and that the keys keep working after a click into the document.
"use strict";

touchstone.openKeys = ({ main, place, actions, grade, isOn, onEscape, onDocument }) => {
  const LETTERS = { u: "undo", Backspace: "undo", x: "obstacles", c: "comment", a: "ask", g: "guidelines", h: "marks", s: "summary", "?": "help" };
  const SCREENS = { " ": 1, PageDown: 1, PageUp: -1, ArrowDown: 1 / 9, ArrowUp: -1 / 9, Home: -Infinity };
  const FIELD = "input, textarea, select";
  // A dialog's field keeps the focus for a frame after Escape has closed it.
  const isGone = (target) => Boolean(target.closest("dialog:not([open])"));
  const isTyping = (target) => target.isContentEditable || Boolean(target.closest && target.closest(FIELD) && !isGone(target));
  let cameByTab = false;

  // Space presses the button that is in focus, arrows scroll a topic that is longer than its place.
  function belongsTo(target, key) {
    if (key === " ") return target.closest("button, a, summary");
    const topic = target.closest(".judge-topic");
    return topic && topic.scrollHeight > topic.clientHeight;
  }

  function inDialog(dialog, event) {
    if (dialog.id === "obstacles" && /^[1-9]$/.test(event.key)) actions.chooseObstacle(Number(event.key));
    else if (LETTERS[event.key] === dialog.id) dialog.close();
    else return;
    event.preventDefault();
  }

  document.addEventListener("keydown", (event) => {
    cameByTab = event.key === "Tab";
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || isTyping(event.target)) return;
    const dialog = document.querySelector("dialog[open]");
    if (!dialog && event.key in SCREENS && !belongsTo(event.target, event.key)) {
      actions.scroll(event.key === " " && event.shiftKey ? -1 : SCREENS[event.key]); // a held key goes on scrolling
      return event.preventDefault();
    }
    if (event.repeat) return;
    if (event.key === "Escape" && !dialog) return onEscape();
    if (!isOn()) return;
    if (dialog) return inDialog(dialog, event);
    if (/^[0-9]$/.test(event.key)) grade(Number(event.key));
    else if (LETTERS[event.key]) actions[LETTERS[event.key]]();
    else return;
    event.preventDefault();
  });

  // A click into the document would leave the keyboard there, and no grade key would act. So the focus
  // comes back, unless Tab brought it: then someone wants to read the document with the keyboard alone.
  document.addEventListener("pointerdown", () => { cameByTab = false; });
  place.addEventListener("pointerover", () => { cameByTab = false; });
  window.addEventListener("blur", () => {
    setTimeout(() => {
      const frame = document.activeElement;
      if (!frame || frame.tagName !== "IFRAME") return;
      onDocument(cameByTab);
      if (cameByTab) return;
      frame.blur();
      main.focus({ preventScroll: true });
    });
  });

  // After a click, Space shall scroll and not press the same button again. A button reached by Tab keeps the focus.
  document.addEventListener("click", (event) => {
    const button = event.detail > 0 && event.target.closest("#judge button");
    if (button && document.activeElement === button) main.focus({ preventScroll: true });
  });
};
