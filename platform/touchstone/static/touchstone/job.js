// Keeps the page of a job fresh: fetches its changing part every second until the job has ended.
"use strict";

(() => {
  const box = document.getElementById("job");
  const said = document.getElementById("job-said");
  const words = { done: "Done.", failed: "It failed.", cancelled: "Cancelled." };

  function swap(text) {
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("job-part");
    const old = document.getElementById("job-part");
    if (!fresh || !old) return false;
    const hadFocus = old.contains(document.activeElement);
    old.replaceWith(fresh);
    if (hadFocus) fresh.querySelector("button:not([disabled]), a")?.focus();
    return true;
  }

  async function poll() {
    let pause = 1000;
    try {
      const answer = await fetch(box.dataset.url, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (answer.redirected || answer.status === 404) {
        location.reload(); // logged out meanwhile: the page itself says so
        return;
      }
      if (!answer.ok || !swap(await answer.text())) throw new Error(String(answer.status));
      said.textContent = "";
    } catch {
      said.textContent = "The server cannot be reached; trying again …";
      pause = 3000;
    }
    const part = document.getElementById("job-part");
    if (part.dataset.active === "true") setTimeout(poll, pause);
    else said.textContent = words[part.dataset.state] || "";
  }

  if (document.getElementById("job-part").dataset.active === "true") setTimeout(poll, 1000);
})();
