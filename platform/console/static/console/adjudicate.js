// The adjudication page: a digit decides, n goes on. Without this script the buttons and the link do the same.
"use strict";

(() => {
  const form = document.querySelector("[data-decide]");
  if (!form) return;
  let sent = false;
  form.addEventListener("submit", (event) => {
    if (sent) event.preventDefault(); // a key held down is one decision
    sent = true;
  });
  window.addEventListener("pageshow", () => { sent = false; });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.closest("input, textarea, select")) return;
    const button = form.querySelector(`button[aria-keyshortcuts="${CSS.escape(event.key)}"]`);
    if (button) {
      event.preventDefault();
      button.click();
    } else if (event.key === "n") {
      document.querySelector("[data-skip]")?.click();
    }
  });
})();
