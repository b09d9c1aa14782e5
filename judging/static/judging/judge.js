// The judging screen. One judgment is one entry of the outbox: it stays in localStorage until the
// server has answered for it, so a lost network, a closed tab or a crash loses no work, and the
// client token makes sending it twice harmless. The next document is here before it is needed: a
// judgment brings it at once and is sent behind it.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const root = byId("judge");
  const main = byId("content");
  const state = JSON.parse(byId("judge-state").textContent);
  const gradeButtons = [...document.querySelectorAll(".grade")];
  const labels = new Map(gradeButtons.map((b) => [Number(b.dataset.grade), b.textContent.trim().replace(/\s+/g, " ")]));
  const obstacles = new Map(state.obstacles || []);

  const SETTLE_MS = 200; // the second half of a double tap must not grade the next document
  const KEYS_SETTING = "touchstone-single-keys";
  const MARKS_SETTING = "touchstone-marks";

  let queue = []; // leased and not yet judged here; the first is shown, the second loaded ahead
  let late = ""; // the token of a shown document that may have gone to somebody else
  let isGoingBack = false; // the history is being fetched
  let isOverDocument = false; // the pointer
  let shownAt = -Infinity;
  const judged = new Set(); // tokens that this page or another tab has put into the outbox

  const outbox = touchstone.openOutbox(`touchstone-outbox:${root.dataset.user}:${state.claim_url}`);
  const ask = (url, body) => touchstone.ask(state.csrf_token, url, body);
  const notices = touchstone.openNotices();
  const review = touchstone.openReview({ fetchHistory: () => ask(state.history_url) });
  const current = () => queue[0] || null;
  const shownItem = () => review.item() || current();
  const isWaiting = (token) => outbox.waiting().some((entry) => entry.body.token === token);
  const isJudged = (token) => judged.has(token) || outbox.waiting().some((entry) => entry.kind === "submit" && entry.body.token === token);

  function setting(name, value) {
    try {
      if (value) localStorage.setItem(name, value);
      return localStorage.getItem(name);
    } catch {
      return null; // holds for this page
    }
  }

  let hasMarks = setting(MARKS_SETTING) !== "off";

  const clock = touchstone.openClock({
    name: `touchstone-session:${root.dataset.user}:${state.claim_url}`,
    shownToken: () => (shownItem() || {}).token,
    isReading: () => isOverDocument || matchMedia("(hover: none)").matches, // a finger in the frame leaves no trace
  });
  const summary = touchstone.openSummary({
    clock,
    waiting: () => outbox.waiting().length,
    breakMinutes: state.break_minutes,
    completion: state.completion,
  });
  const comments = touchstone.openComments({ user: root.dataset.user, main, onChange: () => showComment() });
  const sending = touchstone.openSending({
    outbox,
    ask,
    urls: state,
    screen: { takesItems, takesBack, isStored, isConnected, waits, stops, ends, changes: show },
  });
  const heartbeat = touchstone.openHeartbeat({
    clock,
    send: (tokens) => ask(state.heartbeat_url, { tokens }),
    tokens: () => queue.map((item) => item.token).filter((token) => token !== late),
    onLost,
  });
  const frames = touchstone.openFrames(byId("frame-place"), {
    queryOf: () => (hasMarks ? "" : "?marks=0"),
    isOffline: () => !navigator.onLine || (sending.willRetry() && !sending.isBusy()),
  });

  // ---- what is shown -----------------------------------------------------------------------
  function showTopic(item) {
    const topic = item ? item.topic : { title: "" };
    byId("topic-title").textContent = topic.title;
    byId("topic-description").textContent = topic.description || "";
    byId("topic-narrative").textContent = topic.narrative || "";
    byId("topic-more").hidden = !(topic.description || topic.narrative);
    document.querySelector(".judge-kicker").hidden = !item;
  }

  function showReview() {
    const item = review.item();
    byId("review-note").hidden = !item;
    if (!item) return;
    const answer = item.obstacle
      ? touchstone.say("you could not judge", { reason: obstacles.get(item.obstacle) || item.obstacle })
      : touchstone.say("you gave", { grade: labels.get(item.grade) || item.grade });
    const change = touchstone.say(comments.isChanged() ? "choose for the comment" : "choose again");
    byId("review-text").textContent = `${touchstone.count("back", review.steps())} ${answer} ${change}`;
    byId("review-comment").hidden = !item.comment;
    byId("review-comment").textContent = item.comment ? touchstone.say("your comment", { comment: item.comment }) : "";
  }

  function showComment() {
    const has = Boolean(shownItem()) && comments.value() !== "";
    byId("open-comment").setAttribute("aria-expanded", String(comments.isOpen()));
    byId("open-comment").classList.toggle("has", has);
    byId("comment-word").textContent = touchstone.say(has ? "comment added" : "comment");
    showReview();
  }

  function showButtons(item) {
    const going = review.item();
    for (const button of gradeButtons) {
      button.setAttribute("aria-disabled", String(!item));
      button.setAttribute("aria-pressed", String(Boolean(going) && item.grade === Number(button.dataset.grade)));
    }
    for (const id of ["open-obstacles", "open-comment"]) byId(id).setAttribute("aria-disabled", String(!item));
    byId("open-obstacles").classList.toggle("chosen", Boolean(going && going.obstacle));
    byId("undo").setAttribute("aria-disabled", String(isGoingBack));
    byId("marks").setAttribute("aria-pressed", String(hasMarks));
  }

  function showSaved() {
    root.dataset.sending = String(sending.isSending());
    notices.saved({
      waiting: outbox.waiting().length,
      isSending: sending.isSending(),
      willRetry: sending.willRetry(),
      isBusy: sending.isBusy(),
    });
  }

  function show() {
    const item = shownItem();
    const changed = root.dataset.token !== (item ? item.token : "");
    root.dataset.token = item ? item.token : "";
    root.setAttribute("aria-busy", String(!item && sending.isSending()));
    root.dataset.ready = String(Boolean(item));
    showTopic(item);
    byId("document-title").textContent = item ? item.document.title : "";
    byId("empty").hidden = Boolean(item);
    byId("late-note").hidden = !item || item.token !== late;
    frames.show(item, [...queue.slice(0, 2), review.last()]);
    comments.show(item);
    showButtons(item);
    showComment();
    showSaved();
    if (!changed || !item) return;
    shownAt = performance.now();
    notices.say("");
    const isNew = show.topic !== item.topic.title;
    show.topic = item.topic.title;
    const topic = isNew ? touchstone.say("new topic", { title: item.topic.title }) : "";
    const titled = item.document.title ? "document titled" : "document";
    notices.announce(`${topic} ${touchstone.say(titled, { title: item.document.title })}`.trim());
  }

  // ---- what sending tells us ---------------------------------------------------------------
  function showEnd(title, text, mayRetry = true) {
    summary.atTheEnd();
    notices.empty(title, text, { mayRetry, isEnd: true });
  }

  // The judgment is stored, but there is no next document: the campaign is closed, or a manager paused the judging.
  function ends({ title, detail }) {
    [queue, late] = [[], ""];
    showEnd(title, detail);
  }

  // What the server has for us. The document on the screen stays, whatever it says: somebody is reading it.
  function takesItems(data) {
    clock.count(false);
    notices.progress(data.progress);
    const items = data.items.filter((item) => !isJudged(item.token));
    const reading = current() && !isJudged(current().token) ? current() : null;
    const again = reading && items.find((item) => item.token === reading.token);
    queue = again ? [again, ...items.filter((item) => item !== again)] : items;
    late = "";
    if (reading && !again) becomesLate(reading);
    if (!queue.length && data.reason) showEnd(touchstone.say(data.reason), touchstone.say(`${data.reason} text`), data.reason !== "quota");
    else if (!queue.length) notices.empty(touchstone.say("looking"), "", { mayRetry: true });
    if (current()) heartbeat.renewed(current().lease_seconds);
  }

  // One of the others might be the same document, leased anew: they come with the reply to the judgment of this one.
  function becomesLate(item) {
    late = item.token;
    queue = [item];
  }

  function onLost(tokens) {
    const lost = tokens.filter((token) => !isJudged(token));
    if (current() && lost.includes(current().token)) {
      becomesLate(current());
      show();
    } else if (lost.length) sending.refresh();
  }

  function isStored(entry, progress) {
    clock.forget(entry.body.token);
    notices.progress(progress);
  }

  // Refused, or set aside: if it is still ours, it comes again, with the comment that was to go with it.
  function takesBack(entry, problem, isAside) {
    if (entry.kind === "submit") {
      judged.delete(entry.body.token);
      review.refused(entry.body.token);
      clock.refused(entry.body.token);
    }
    comments.bringBack(entry.body.token, entry.body.comment);
    if (isAside) showSetAside(problem.title);
    else notices.problem(problem);
  }

  function showSetAside(detail) {
    const n = outbox.setAside().length;
    if (n) notices.problem({ kind: "aside", title: touchstone.count("set aside", n), detail });
  }

  // Without the server there is no further document; say so instead of seeming stuck.
  function waits(status) {
    const n = outbox.waiting().length;
    const safe = n ? touchstone.count("safe", n) : "";
    if (!current()) notices.empty(touchstone.say(status ? "busy" : "waiting"), `${safe} ${touchstone.say("goes on by itself")}`.trim());
  }

  function stops(problem) {
    notices.problem(problem);
    if (!current()) notices.empty(problem.title, problem.detail, { mayRetry: true });
  }

  function isConnected() {
    if (frames.renewDoubtful()) show();
  }

  // ---- judging -----------------------------------------------------------------------------
  // `verdict` is { grade } or { obstacle }.
  function judge(verdict) {
    const item = shownItem();
    if (!item || performance.now() - shownAt < SETTLE_MS) return;
    clock.count(true);
    const isRevision = Boolean(review.item());
    const comment = comments.value();
    const isElsewhere = !isRevision && isJudged(item.token); // another tab was faster
    if (!isElsewhere) {
      outbox.put(isRevision ? "revise" : "submit", { token: item.token, ...verdict, comment, active_milliseconds: clock.of(item.token) });
      review.judged(item, { ...verdict, comment });
    }
    comments.sent(item.token);
    if (isRevision) clock.forget(item.token);
    else takeAway(item);
    review.leave();
    notices.problem(null);
    show();
    if (isElsewhere) notices.say(touchstone.say("judged in another tab"));
    if (isRevision) sending.work();
    else sending.refresh();
    summary.remind();
  }

  function takeAway(item) {
    clock.judged(item.token);
    judged.add(item.token);
    dropJudged();
  }

  function dropJudged() {
    queue = queue.filter((item) => !isJudged(item.token));
    if (!current()) notices.empty(touchstone.say("looking"), "");
  }

  function grade(value) {
    if (!labels.has(value)) return notices.say(touchstone.say("no such grade", { grade: value }));
    judge({ grade: value });
  }

  function chooseObstacle(number) {
    const code = [...obstacles.keys()][number - 1];
    if (!code) return;
    byId("obstacles").close();
    judge({ obstacle: code });
  }

  // ---- going back --------------------------------------------------------------------------
  async function undo() {
    if (isGoingBack) return;
    const before = review.item();
    clock.count(true);
    isGoingBack = true;
    show();
    const { problem, isEnd } = await review.back(isWaiting);
    isGoingBack = false;
    if (problem) notices.problem(problem);
    else if (isEnd) notices.say(touchstone.say(before ? "nothing further back" : "nothing to go back to"));
    show();
  }

  function leaveReview() {
    if (!review.item()) return;
    clock.count(true);
    review.leave();
    show();
  }

  // ---- keys and clicks ---------------------------------------------------------------------
  function toggleMarks() {
    if (!state.highlights_terms) return;
    hasMarks = !hasMarks;
    setting(MARKS_SETTING, hasMarks ? "on" : "off");
    frames.renewAll();
    show();
    notices.announce(touchstone.say(hasMarks ? "highlighted" : "not highlighted"));
  }

  const open = (id) => () => byId(id).showModal();
  const actions = {
    undo, chooseObstacle,
    obstacles: () => shownItem() && byId("obstacles").showModal(),
    comment: () => shownItem() && comments.toggle(),
    marks: toggleMarks,
    summary: summary.open,
    guidelines: open("guidelines"), ask: open("ask"), help: open("help"),
    scroll(screens) {
      clock.count(true);
      frames.scroll(screens);
    },
  };
  const keysAreOn = () => byId("keys-on").checked;
  touchstone.openKeys({
    main,
    place: byId("frame-place"),
    actions,
    grade,
    isOn: keysAreOn,
    onEscape: leaveReview,
    onDocument(byTab) {
      clock.count(true);
      byId("frame-hint").hidden = !byTab;
    },
  });
  window.addEventListener("focus", () => { byId("frame-hint").hidden = true; });

  const onClick = (id, act) => byId(id).addEventListener("click", () => act());
  const onChoice = (id, choose) => byId(id).addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button && event.detail <= 1) choose(button.dataset); // detail 2: the second half of a double click
  });
  onChoice("grades", (data) => grade(Number(data.grade)));
  onChoice("obstacle-list", (data) => chooseObstacle(Number(data.number)));
  for (const name of ["undo", "marks"]) onClick(name, actions[name]);
  for (const name of ["obstacles", "comment", "ask", "guidelines", "summary", "help"]) onClick(`open-${name}`, actions[name]);
  onClick("review-leave", leaveReview);
  onClick("problem-close", notices.problem);
  for (const id of ["problem-retry", "empty-retry"]) {
    onClick(id, () => {
      notices.problem(null);
      outbox.bringBack();
      judged.clear(); // what waits is known from the outbox
      sending.refresh();
    });
  }
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
    });
  }
  byId("keys-on").addEventListener("change", () => setting(KEYS_SETTING, keysAreOn() ? "on" : "off"));
  // Of a pointer over the frame we learn that it came, and no more until it is elsewhere.
  document.addEventListener("pointerover", (event) => {
    clock.count(true);
    isOverDocument = byId("frame-place").contains(event.target);
  });

  // ---- network, other tabs, coming back ----------------------------------------------------
  window.addEventListener("online", sending.hurry);
  window.addEventListener("storage", (event) => {
    const token = outbox.tokenOf(event);
    if (token) judged.add(token); // in another tab
    showSaved();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    if (queue.some((item) => isJudged(item.token))) {
      dropJudged();
      sending.refresh();
    } else heartbeat.catchUp(); // is it still ours?
  });
  setInterval(summary.remind, 15000);
  // Kept alive by the back button, the page shows an item whose lease may be gone: ask again.
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    review.leave();
    queue = [];
    dropJudged();
    sending.refresh();
  });

  // ---- start -------------------------------------------------------------------------------
  byId("keys-on").checked = setting(KEYS_SETTING) !== "off";
  byId("topic-more").open = matchMedia("(min-width: 52.01rem)").matches;
  showSetAside("");
  sending.refresh();
})();
