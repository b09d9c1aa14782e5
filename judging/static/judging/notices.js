// What the screen says: problems, what is saved, how far one is, why there is nothing to judge, short hints.
"use strict";

touchstone.openNotices = () => {
  const byId = (id) => document.getElementById(id);
  const HINT_MS = 3000;
  const SLOW_MS = 4000;
  let notices = []; // problems not yet closed or overtaken
  let hintTimer = 0;
  let slowTimer = 0;
  let judged; // how many judgments the server has, as it said last

  function announce(text) {
    byId("announce").textContent = text;
  }

  return {
    announce,

    // A short word for the eye and for the ear, gone by itself or with the next one, which may be empty.
    say(text) {
      announce(text);
      byId("hint").textContent = text;
      byId("hint").hidden = !text;
      clearTimeout(hintTimer);
      hintTimer = setTimeout(() => { byId("hint").hidden = true; }, HINT_MS);
    },

    // One sending may meet several problems; each is said, once.
    problem(problem) {
      const isOld = (n) => (n.title === problem.title && n.detail === problem.detail) || (n.kind === "aside" && problem.kind === "aside");
      notices = problem ? [...notices.filter((n) => !isOld(n)), problem] : [];
      const [first, ...others] = notices;
      byId("problem").hidden = !first;
      if (!first) return;
      byId("problem-title").textContent = first.title;
      byId("problem-detail").textContent = [first.detail, ...others.flatMap((n) => [n.title, n.detail])].filter(Boolean).join(" ");
      byId("problem-retry").hidden = !notices.some((n) => n.kind === "stop" || n.kind === "aside");
      byId("problem-load").hidden = !notices.some((n) => n.kind === "login");
    },

    saved({ waiting, isSending, willRetry, isBusy }) {
      const saved = byId("saved");
      const write = (text) => { if (saved.textContent !== text) saved.textContent = text; };
      saved.classList.toggle("waiting", waiting > 0 && (willRetry || !isSending));
      saved.classList.toggle("done", waiting === 0);
      if (!isSending) clearTimeout(slowTimer), slowTimer = 0;
      if (waiting && willRetry) write(touchstone.count(isBusy ? "server busy" : "offline", waiting));
      else if (waiting && isSending) {
        if (!slowTimer) write(touchstone.say("saving"));
        slowTimer ||= setTimeout(() => write(touchstone.say("still saving")), SLOW_MS);
      } else if (waiting) write(touchstone.count("not saved", waiting));
      else write(judged === undefined ? "" : touchstone.count("saved", judged));
    },

    progress(progress) {
      if (!progress) return;
      judged = progress.judged;
      const goal = progress.goal;
      byId("progress-text").textContent = goal ? touchstone.count("judged of", judged, { goal }) : touchstone.count("judged", judged);
      byId("progress-bar").hidden = !goal;
      if (!goal) return;
      byId("progress-bar").max = goal;
      byId("progress-bar").value = Math.min(judged, goal);
    },

    empty(title, text, { mayRetry = false, isEnd = false } = {}) {
      byId("empty").hidden = false;
      byId("empty-title").textContent = title;
      byId("empty-text").textContent = text;
      byId("empty-retry").hidden = !mayRetry;
      byId("empty-end").hidden = !isEnd;
      if (isEnd) announce(title);
    },
  };
};
