// Sends what waits in the outbox, oldest first and one at a time, and fetches work when there is none.
// The only place that talks to the server about judgments.
"use strict";

touchstone.openSending = ({ outbox, ask, urls, screen }) => {
  // Any other reason is the English title of a refusal: a claim is refused for it with a type, which has our own words.
  const KNOWN_REASONS = new Set(["no work", "quota"]);
  const AT_HAND = 2; // the document on the screen and the next one
  const LONGEST_WAIT_S = 30;
  const LONGEST_NAMED_S = 120; // that a server may name
  const TOO_MANY = 429;
  const MOST_FAULTS = 3; // an entry the server fails on this often is set aside: it must not keep the others waiting
  let isSending = false;
  let wanted = 0; // how often we were asked to find out what there is to judge
  let known = 0; // up to which of them the server has told us
  let retryTimer = 0;
  let retryStatus = 0; // why we wait: the server's status, or 0 if it did not answer
  let waitSeconds = 1;
  let notBefore = 0; // after too many requests
  let isOver = false; // the last judgment was stored, and the server said that it has nothing more for us

  // After too many requests, nothing is sent before the time that the server names: it would count that, too.
  function tryLater(status, least = 0) {
    clearTimeout(retryTimer);
    const wait = Math.max(waitSeconds, Math.min(least, LONGEST_NAMED_S)) * 1000;
    notBefore = least && status === TOO_MANY ? Date.now() + wait : 0;
    retryTimer = setTimeout(tryAgain, wait);
    retryStatus = status;
    waitSeconds = Math.min(waitSeconds * 2, LONGEST_WAIT_S);
    screen.waits(status);
    return "halt";
  }

  function tryAgain() {
    notBefore = 0;
    work();
  }

  function stopAt(problem) {
    screen.stops(problem);
    return "halt";
  }

  function endAt(problem) {
    screen.ends(problem);
    return "halt";
  }

  function answered() {
    waitSeconds = 1;
    screen.isConnected();
  }

  function took(data, asked) {
    known = Math.max(known, asked);
    screen.takesItems(data);
  }

  // The server did not take it: it is to be judged again, if it is still ours.
  function takeBack(entry, problem, isAside) {
    wanted += 1;
    screen.takesBack(entry, problem, isAside);
    return "refused";
  }

  // Send one entry. Answers "sent", "busy" (stored, but there was no time to look for what is next), "refused" or "halt".
  async function send(entry) {
    const isRevision = entry.kind === "revise";
    const body = isRevision ? entry.body : { ...entry.body, n: AT_HAND };
    const asked = wanted;
    const { data, problem } = await ask(isRevision ? urls.revise_url : urls.submit_url, body);
    const kind = problem ? problem.kind : "";
    if (kind === "later" || (kind === "fault" && outbox.failed(entry) < MOST_FAULTS)) return tryLater(problem.status, problem.wait);
    if (kind === "stop" || kind === "login") return stopAt(problem);
    answered();
    if (kind === "fault") outbox.putAside(entry);
    else outbox.remove(entry);
    if (problem) return takeBack(entry, problem, kind === "fault");
    if (isRevision) return "sent";
    outbox.forget(entry.body.token);
    screen.isStored(entry, data.progress);
    if (data.reason === "busy") return "busy";
    isOver = Boolean(data.reason) && !KNOWN_REASONS.has(data.reason);
    if (!isOver) took(data, asked);
    return "sent";
  }

  async function claim() {
    const asked = wanted;
    const { data, problem } = await ask(urls.claim_url, { n: AT_HAND });
    if (problem && (problem.kind === "later" || problem.kind === "fault")) return tryLater(problem.status, problem.wait);
    if (problem) return isOver && problem.kind !== "login" ? endAt(problem) : stopAt(problem);
    if (data.reason === "busy") return tryLater(503);
    isOver = false;
    answered();
    took(data, asked);
    return "claimed";
  }

  async function step(outcome) {
    const entry = outbox.waiting()[0];
    if (entry) return send(entry);
    if (known === wanted) return "done";
    return outcome === "busy" ? tryLater(503) : claim();
  }

  async function work() {
    if (isSending) return;
    if (Date.now() < notBefore) {
      screen.changes();
      return;
    }
    isSending = true;
    clearTimeout(retryTimer);
    retryTimer = 0;
    let outcome = "";
    screen.changes();
    try {
      while (outcome !== "halt" && outcome !== "done") {
        outcome = await step(outcome);
        screen.changes();
      }
    } finally {
      isSending = false;
      screen.changes();
    }
  }

  return {
    work,
    // Find out what there is to judge: from the reply to a judgment that waits, or by asking.
    refresh() {
      wanted += 1;
      work();
    },
    // The network says that it is back.
    hurry() {
      waitSeconds = 1;
      if (retryTimer) work();
    },
    isSending: () => isSending,
    willRetry: () => retryTimer !== 0,
    isBusy: () => retryStatus !== 0,
  };
};
