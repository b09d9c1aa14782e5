// Questions to the managers: about the document on the screen or in general. What is shown and sent is alike for all
// documents. While a question waits, the page looks for an answer once a minute.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const state = JSON.parse(byId("judge-state").textContent);
  const [dialog, text, about, list] = ["ask", "ask-text", "ask-about", "ask-list"].map(byId);
  const LOOK_MS = 60000;
  let isWaiting = state.asks;

  const request = (body) => touchstone.ask(state.csrf_token, state.questions_url, body);
  const token = () => byId("judge").dataset.token || "";

  function line(message) {
    const row = document.createElement("li");
    const who = document.createElement("strong");
    who.textContent = message.sender || touchstone.say("you");
    const words = document.createElement("span");
    words.dir = "auto";
    words.textContent = message.text;
    const topic = document.createElement("small");
    topic.textContent = message.topic || "";
    row.append(who, " ", topic, document.createElement("br"), words);
    return row;
  }

  function markRead(message) {
    const url = state.read_url.replace("/0/", `/${message.id}/`);
    fetch(url, { method: "POST", headers: { Accept: "application/json", "X-CSRFToken": state.csrf_token } }).catch(() => null);
  }

  // `isOpen`: somebody reads it now.
  async function look(isOpen) {
    const { data } = await request();
    if (!data) return;
    const news = data.filter((message) => message.sender && !message.read_at);
    isWaiting = data.some((message) => !message.sender && !message.read_at);
    byId("ask-new").hidden = !news.length || isOpen;
    list.replaceChildren(...data.map(line));
    list.hidden = !data.length;
    if (isOpen) news.forEach(markRead);
  }

  // However it was opened, by key or button.
  new MutationObserver(() => {
    if (!dialog.open) return;
    byId("ask-said").textContent = "";
    about.disabled = !token();
    about.checked = Boolean(token());
    text.focus();
    look(true);
  }).observe(dialog, { attributeFilter: ["open"] });

  byId("ask-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = byId("ask-send");
    if (button.disabled || !text.value.trim()) return;
    button.disabled = true;
    const { data, problem } = await request({ text: text.value, token: about.checked ? token() : null });
    button.disabled = false;
    byId("ask-said").textContent = data ? touchstone.say("asked") : `${problem.title} ${problem.detail}`.trim();
    if (!data) return;
    text.value = "";
    look(true);
  });

  setInterval(() => isWaiting && !document.hidden && look(dialog.open), LOOK_MS);
})();
