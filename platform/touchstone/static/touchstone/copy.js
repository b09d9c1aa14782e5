// A button that copies the text of another element. Without script the button is not there: the text can be selected.
"use strict";

for (const button of document.querySelectorAll("button[data-copies]")) {
  const source = document.getElementById(button.dataset.copies);
  const said = button.parentElement.querySelector("[role=status]");
  if (!source || !navigator.clipboard) continue;
  button.parentElement.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.innerText.trim());
      said.textContent = button.dataset.done;
    } catch {
      getSelection().selectAllChildren(source);
      said.textContent = button.dataset.selected;
    }
  });
}
