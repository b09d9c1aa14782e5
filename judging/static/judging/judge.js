// The judging screen. One judgment is one entry of the outbox: it stays in localStorage until the
// server has answered for it, so a lost network, a closed tab or a crash loses no work, and the
// client token makes sending it twice harmless.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const root = byId("judge");
  const state = JSON.parse(byId("judge-state").textContent);
  const gradeButtons = [...document.querySelectorAll(".grade")];
  const gradeLabels = new Map(gradeButtons.map((b) => [Number(b.dataset.grade), b.textContent.trim().replace(/\s+/g, " ")]));
  const main = byId("content");

  const IDLE_MS = 60000; // after this long without a sign of life, time is not counted as work
  const SETTLE_MS = 200; // the second half of a double tap must not grade the next document
  const LONGEST_WAIT_S = 30;
  const MOST_FAULTS = 3; // an entry the server fails on this often is set aside: it must not keep the others waiting

  const outbox = touchstone.openOutbox(`touchstone-outbox:${root.dataset.user}:${state.claim_url}`);
  const ask = (url, body) => touchstone.ask(state.csrf_token, url, body);

  let current = null; // the leased item
  let review = null; // { list, index } while going back
  let busy = true; // a request that decides what is shown next is under way
  let shownAt = -Infinity;
  let gradedToken = ""; // the shown item once it is graded: nothing but a claim or a saved judgment may follow
  let retryTimer = 0;
  let retryStatus = 0; // why we wait: the server's status, or 0 if it did not answer
  let waitSeconds = 1;
  let notices = []; // problems not yet closed or overtaken

  // ---- active time: only while visible, and up to a minute after the last sign of life ------
  const activeTime = new Map(); // token -> milliseconds
  let countedUntil = performance.now();
  let lastSign = performance.now();
  let wasVisible = !document.hidden;

  function countTime(isSign) {
    const now = performance.now();
    const item = shownItem();
    const end = Math.min(now, lastSign + IDLE_MS);
    if (wasVisible && item && end > countedUntil) {
      activeTime.set(item.token, (activeTime.get(item.token) || 0) + end - countedUntil);
    }
    countedUntil = now;
    wasVisible = !document.hidden;
    if (isSign) lastSign = now;
  }

  // ---- what is shown -----------------------------------------------------------------------
  const shownItem = () => (review ? review.list[review.index] : current);

  function announce(text) {
    byId("announce").textContent = text;
  }

  function showSaved() {
    const waiting = outbox.waiting().length;
    const saved = byId("saved");
    saved.classList.toggle("waiting", waiting > 0 && willRetry());
    saved.classList.toggle("done", waiting === 0);
    if (waiting && willRetry()) saved.textContent = `${retryStatus ? "The server is busy;" : "Offline:"} ${waiting} waiting, will be sent`;
    else if (waiting) saved.textContent = busy ? "Saving…" : `Not saved: ${waiting} kept here`;
    else saved.textContent = showSaved.judged === undefined ? "" : `Saved ${showSaved.judged}`;
  }

  const willRetry = () => retryTimer !== 0;

  function showProgress(progress) {
    if (!progress) return;
    showSaved.judged = progress.judged;
    const goal = progress.goal;
    byId("progress-text").textContent = goal ? `${progress.judged} of ${goal} judged by you` : `${progress.judged} judged by you`;
    byId("progress-bar").hidden = !goal;
    if (goal) {
      byId("progress-bar").max = goal;
      byId("progress-bar").value = Math.min(progress.judged, goal);
    }
  }

  // One sending may meet several problems; each is said, once.
  function showProblem(problem) {
    const isOld = (n) => n.title === problem.title && n.detail === problem.detail || n.kind === "aside" && problem.kind === "aside";
    notices = problem ? [...notices.filter((n) => !isOld(n)), problem] : [];
    const [first, ...others] = notices;
    byId("problem").hidden = !first;
    if (!first) return;
    byId("problem-title").textContent = first.title;
    byId("problem-detail").textContent = [first.detail, ...others.flatMap((n) => [n.title, n.detail])].filter(Boolean).join(" ");
    byId("problem-retry").hidden = !notices.some((n) => n.kind === "stop" || n.kind === "aside");
    byId("problem-load").hidden = !notices.some((n) => n.kind === "login");
  }

  function showSetAside(detail) {
    const n = outbox.setAside().length;
    const what = n === 1 ? "A judgment could not be stored; it is" : `${n} judgments could not be stored; they are`;
    if (n) showProblem({ kind: "aside", title: `${what} kept in this browser.`, detail });
  }

  function showEmpty(title, text, mayRetry) {
    byId("empty").hidden = false;
    byId("empty-title").textContent = title;
    byId("empty-text").textContent = text;
    byId("empty-retry").hidden = !mayRetry;
  }

  // A new element for each document: changing src would add to the history, and the browser's back
  // button would then walk through documents.
  function showFrame(item) {
    const place = byId("frame-place");
    const old = place.querySelector("iframe");
    if (old && item && old.dataset.token === item.token) return;
    if (old) old.remove();
    byId("frame-hint").hidden = true;
    if (!item) return;
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "");
    frame.title = "Document";
    frame.dataset.token = item.token;
    frame.className = "loading";
    frame.addEventListener("load", () => frame.classList.remove("loading"));
    frame.src = item.document.frame_url;
    place.append(frame);
  }

  function show() {
    const item = shownItem();
    const changed = root.dataset.token !== (item ? item.token : "");
    root.dataset.token = item ? item.token : "";
    root.setAttribute("aria-busy", String(busy));
    root.dataset.ready = String(Boolean(item) && !busy);
    byId("topic-title").textContent = item ? item.topic.title : "";
    byId("topic-description").textContent = item ? item.topic.description || "" : "";
    byId("topic-narrative").textContent = item ? item.topic.narrative || "" : "";
    byId("topic-more").hidden = !item || !(item.topic.description || item.topic.narrative);
    document.querySelector(".judge-kicker").hidden = !item;
    byId("document-title").textContent = item ? item.document.title : "";
    if (item) byId("empty").hidden = true;
    showFrame(item);
    for (const button of gradeButtons) {
      button.setAttribute("aria-disabled", String(!item || busy));
      button.setAttribute("aria-pressed", String(Boolean(review) && item.grade === Number(button.dataset.grade)));
    }
    byId("review-note").hidden = !review;
    if (review) {
      const given = gradeLabels.get(item.grade) || item.grade;
      byId("review-text").textContent = `${review.index + 1} back. You gave ${given}. Choose again to change it.`;
    }
    byId("undo").setAttribute("aria-disabled", String(busy));
    showSaved();
    if (changed && item) {
      shownAt = performance.now();
      const topicChanged = show.topic !== item.topic.title;
      show.topic = item.topic.title;
      announce(topicChanged ? `New topic: ${item.topic.title}. Document: ${item.document.title}` : `Document: ${item.document.title}`);
    }
  }

  function setBusy(value) {
    busy = value;
    show();
  }

  function takeNext(data) {
    countTime(false);
    current = data.item || null;
    gradedToken = "";
    showProgress(data.progress);
    if (current || data.reason === "busy") return;
    const reasons = {
      "no work": ["No more work for you right now", "Thank you. New documents may come later."],
      "This campaign is not open": ["This campaign is not open", "Its manager has paused or closed it. Everything you judged is kept."],
    };
    const [title, text] = reasons[data.reason] || ["No more work for you right now", data.reason];
    showEmpty(title, text, true);
    announce(title);
  }

  // ---- sending -----------------------------------------------------------------------------
  function tryLater(problem) {
    clearTimeout(retryTimer);
    retryTimer = setTimeout(work, waitSeconds * 1000);
    retryStatus = problem.status;
    waitSeconds = Math.min(waitSeconds * 2, LONGEST_WAIT_S);
    // Without the server there is no next document; say so instead of seeming stuck.
    if (!current) showEmpty(retryStatus ? "The server is busy …" : "Waiting for the connection …", "It will go on by itself.", false);
    show();
    return "halt";
  }

  // Send one entry. Answers "sent" (the next document came with it), "late" (it did not: claim it in a moment), "gone" (claim it now),
  // "kept" (nothing changes), or "halt".
  async function send(entry) {
    const { data, problem } = await ask(entry.kind === "revise" ? state.revise_url : state.submit_url, entry.body);
    const kind = problem ? problem.kind : "";
    if (kind === "later" || (kind === "fault" && outbox.failed(entry) < MOST_FAULTS)) return tryLater(problem);
    if (kind === "stop" || kind === "login") return stopAt(problem);
    waitSeconds = 1;
    if (kind === "fault") {
      outbox.putAside(entry);
      showSetAside(problem.title);
      return "gone";
    }
    outbox.remove(entry);
    if (problem) showProblem(problem);
    if (problem || entry.kind === "revise") return problem ? "gone" : "kept";
    activeTime.delete(entry.body.token);
    outbox.forget(entry.body.token);
    takeNext(data);
    return data.reason === "busy" ? "late" : "sent";
  }

  // Send what waits, oldest first, and see to it that an item is shown. The only place that does.
  async function work() {
    if (work.running) return;
    work.running = true;
    try {
      clearTimeout(retryTimer);
      retryTimer = 0;
      setBusy(true);
      // Graded, yet nothing waits: another tab has sent it.
      let needsClaim = current === null || current.token === gradedToken;
      let late = false;
      for (let entry = outbox.waiting()[0]; entry; entry = outbox.waiting()[0]) {
        const outcome = await send(entry);
        if (outcome === "halt") return;
        if (outcome === "kept") continue;
        needsClaim = outcome === "gone";
        late = outcome === "late";
      }
      if (late) return tryLater({ status: 503 });
      if (needsClaim) {
        const { data, problem } = await ask(state.claim_url, {});
        if (problem && (problem.kind === "later" || problem.kind === "fault")) return tryLater(problem);
        if (problem) return stopAt(problem);
        waitSeconds = 1;
        takeNext(data);
      }
      setBusy(false);
    } finally {
      work.running = false;
    }
  }

  function stopAt(problem) {
    showProblem(problem);
    if (!current) showEmpty(problem.title, problem.detail, true);
    setBusy(false);
    return "halt";
  }

  function grade(value) {
    const item = shownItem();
    if (!item || busy || !gradeLabels.has(value) || performance.now() - shownAt < SETTLE_MS) return;
    countTime(true);
    const blocked = outbox.waiting().some((entry) => entry.body.token === item.token && entry.kind === "submit");
    if (!blocked) {
      const active = Math.round(activeTime.get(item.token) || 0);
      outbox.put(review ? "revise" : "submit", { token: item.token, grade: value, active_milliseconds: active });
    }
    if (review) {
      activeTime.delete(item.token);
      leaveReview();
    } else gradedToken = item.token;
    showProblem(null);
    work();
  }

  // ---- going back --------------------------------------------------------------------------
  async function undo() {
    if (busy) return;
    if (review) {
      if (review.index + 1 >= review.list.length) return announce("This is the first judgment that can be shown.");
      countTime(true);
      review.index += 1;
      return show();
    }
    setBusy(true);
    const answer = await ask(state.history_url);
    if (answer.problem) {
      showProblem(answer.problem);
    } else if (!answer.data.judgments.length) {
      announce("There is no judgment of yours to go back to.");
      byId("saved").textContent = "Nothing to undo";
    } else {
      countTime(true);
      showProblem(null);
      review = { list: answer.data.judgments, index: 0 };
    }
    const nothing = !answer.problem && !review;
    setBusy(false);
    if (nothing) byId("saved").textContent = "Nothing to undo";
  }

  function leaveReview() {
    if (!review) return;
    countTime(true);
    review = null;
    if (!current) byId("empty").hidden = false;
    show();
  }

  // ---- keys and clicks ---------------------------------------------------------------------
  const keysSetting = "touchstone-single-keys";

  const keysAreOn = () => byId("keys-on").checked;
  const isTyping = (target) => target.isContentEditable || Boolean(target.closest && target.closest("input, textarea, select"));

  document.addEventListener("keydown", (event) => {
    cameByTab = event.key === "Tab";
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.isComposing) return;
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") return leaveReview();
    if (!keysAreOn()) return;
    if (/^[0-9]$/.test(event.key)) grade(Number(event.key));
    else if (event.key === "u" || event.key === "Backspace") undo();
    else if (event.key === "g") byId("guidelines").showModal();
    else if (event.key === "?") byId("help").showModal();
    else return;
    event.preventDefault();
  });

  byId("grades").addEventListener("click", (event) => {
    const button = event.target.closest(".grade");
    if (button && event.detail <= 1) grade(Number(button.dataset.grade)); // detail 2: the second half of a double click
  });
  byId("undo").addEventListener("click", undo);
  byId("review-leave").addEventListener("click", leaveReview);
  byId("problem-close").addEventListener("click", () => showProblem(null));
  for (const id of ["problem-retry", "empty-retry"]) {
    byId(id).addEventListener("click", () => {
      showProblem(null);
      outbox.bringBack();
      work();
    });
  }
  for (const [button, dialog] of [["open-guidelines", "guidelines"], ["open-help", "help"]]) {
    byId(button).addEventListener("click", () => byId(dialog).showModal());
  }
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
    });
  }
  byId("keys-on").addEventListener("change", () => {
    try {
      localStorage.setItem(keysSetting, keysAreOn() ? "on" : "off");
    } catch { /* holds for this page */ }
  });

  // A click into the document would leave the keyboard there, and no grade key would act. So the focus
  // comes back, unless Tab brought it: then someone wants to scroll the document with the keyboard.
  let cameByTab = false;
  document.addEventListener("pointerdown", () => { cameByTab = false; });
  byId("frame-place").addEventListener("pointerenter", () => { cameByTab = false; }, true);
  window.addEventListener("blur", () => {
    setTimeout(() => {
      const frame = document.activeElement;
      if (!frame || frame.tagName !== "IFRAME") return;
      countTime(true);
      if (cameByTab) {
        byId("frame-hint").hidden = false;
        return;
      }
      frame.blur();
      main.focus({ preventScroll: true });
    });
  });
  window.addEventListener("focus", () => { byId("frame-hint").hidden = true; });

  // ---- time, network, coming back ----------------------------------------------------------
  for (const name of ["pointermove", "pointerdown", "keydown", "wheel", "scroll", "touchstart", "focus"]) {
    window.addEventListener(name, () => countTime(true), { passive: true, capture: true });
  }
  document.addEventListener("visibilitychange", () => countTime(!document.hidden));
  window.addEventListener("online", () => {
    waitSeconds = 1;
    if (willRetry()) work();
  });
  // Kept alive by the back button, the page shows an item whose lease may be gone: ask again.
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    review = null;
    current = null;
    work();
  });

  // ---- start -------------------------------------------------------------------------------
  try {
    byId("keys-on").checked = localStorage.getItem(keysSetting) !== "off";
  } catch { /* keys stay on */ }
  byId("topic-more").open = window.matchMedia("(min-width: 52.01rem)").matches;
  current = state.item || null;
  showSetAside("");
  if (current && !outbox.waiting().length) setBusy(false);
  else work();
})();
