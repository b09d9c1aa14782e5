// The comment on the shown document: a draft a document, in sessionStorage until it goes with the judgment.
"use strict";

touchstone.openComments = ({ user, main, onChange }) => {
  const panel = document.getElementById("comment-panel");
  const text = document.getElementById("comment");
  const memory = new Map(); // what storage does not take lives as long as the page
  let token = "";
  let earlier = ""; // the comment that was stored with the judgment

  const keyOf = (which) => `touchstone-comment:${user}:${which}`;

  function read(which) {
    if (memory.has(which)) return memory.get(which);
    try {
      return sessionStorage.getItem(keyOf(which));
    } catch {
      return null;
    }
  }

  function write(which, value) {
    memory.set(which, value);
    try {
      sessionStorage.setItem(keyOf(which), value);
      memory.delete(which);
    } catch { /* then in memory */ }
  }

  function erase(which) {
    memory.delete(which);
    try {
      sessionStorage.removeItem(keyOf(which));
    } catch { /* was in memory only */ }
  }

  function close() {
    if (panel.hidden) return;
    panel.hidden = true;
    main.focus({ preventScroll: true });
    onChange();
  }

  function open() {
    if (!token) return;
    panel.hidden = false;
    text.focus();
    onChange();
  }

  text.addEventListener("input", () => {
    if (text.value === earlier) erase(token);
    else write(token, text.value);
    onChange();
  });
  text.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key !== "Escape" && !(event.key === "Enter" && (event.ctrlKey || event.metaKey))) return;
    event.preventDefault();
    event.stopPropagation(); // Escape closes this, and nothing else
    close();
  });
  document.getElementById("comment-close").addEventListener("click", close);

  return {
    // Another document is shown, with the comment it already has.
    show(item) {
      const next = item ? item.token : "";
      if (next === token) return;
      token = next;
      earlier = (item && item.comment) || "";
      const draft = token ? read(token) : null;
      text.value = draft === null ? earlier : draft;
      panel.hidden = true;
    },
    toggle: () => (panel.hidden ? open() : close()),
    close,
    isOpen: () => !panel.hidden,
    isChanged: () => text.value.trim() !== earlier.trim(),
    value: () => text.value.trim(),
    sent: erase,
    // The judgment it went with was refused: the comment is not lost with it.
    bringBack(which, comment) {
      if (comment && read(which) === null) write(which, comment);
      if (which === token) text.value = read(which) || "";
    },
  };
};
