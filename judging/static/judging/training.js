// The training pages: a digit presses the button of that grade; nothing acts while somebody types or holds a key.
"use strict";

// The same switch as in the help of the judging screen: people who use speech input turn single keys off.
function keysAreOn() {
  try {
    return localStorage.getItem("touchstone-single-keys") !== "off";
  } catch {
    return true;
  }
}

let cameByTab = false;
document.addEventListener("keydown", (event) => {
  cameByTab = event.key === "Tab";
  if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || event.isComposing || !keysAreOn()) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const button = /^[0-9]$/.test(event.key) && document.querySelector(`button[data-key="${event.key}"]`);
  if (!button) return;
  event.preventDefault();
  button.click();
});

// A click into the document would leave the keyboard there. Tab brings it there on purpose, to scroll.
document.addEventListener("pointerdown", () => { cameByTab = false; });
window.addEventListener("blur", () => {
  setTimeout(() => {
    const frame = document.activeElement;
    if (frame && frame.tagName === "IFRAME" && !cameByTab) frame.blur();
  });
});

// One answer a page: a double click or a second key sends nothing more.
for (const form of document.querySelectorAll(".grade-bar form")) {
  let isSent = false;
  form.addEventListener("submit", (event) => {
    if (isSent) event.preventDefault();
    isSent = true;
  });
}

// A page that comes back from the browser's memory asks the server anew: it keeps the first answer.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
