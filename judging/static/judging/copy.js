// Buttons that copy a link or a code. Without a clipboard (plain HTTP) they stay hidden: the text can be selected.
"use strict";

const status = document.querySelector("[data-copied]");

for (const field of document.querySelectorAll("[data-select]")) {
  field.addEventListener("focus", () => field.select());
}

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  const words = button.textContent;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).value);
    button.textContent = status.dataset.copied;
    status.textContent = status.dataset.copied;
    setTimeout(() => {
      button.textContent = words;
      status.textContent = "";
    }, 2000);
  });
}
