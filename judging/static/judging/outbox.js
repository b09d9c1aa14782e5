// What judge.js stands on: the outbox in localStorage, and the requests with what their answers allow.
"use strict";

(() => {
  const SET_ASIDE = ":set-aside";

  function newToken() {
    if (crypto.randomUUID) return crypto.randomUUID(); // only on https and localhost
    const b = crypto.getRandomValues(new Uint8Array(16));
    b[6] = (b[6] & 0x0f) | 0x40;
    b[8] = (b[8] & 0x3f) | 0x80;
    const hex = [...b].map((x) => x.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }

  // ---- outbox ------------------------------------------------------------------------------
  // One key per entry: tabs of the same assessor share the outbox, and none can erase what another
  // put in. What the server failed on again and again is set aside under a key of its own.
  function openOutbox(name) {
    const prefix = `${name}:`;
    const memory = new Map(); // what storage does not take (private windows, a full disk) lives as long as the page

    const keyOf = (entry) => prefix + entry.body.client_token;

    function write(key, entry) {
      try {
        localStorage.setItem(key, JSON.stringify(entry));
        memory.delete(key);
      } catch {
        memory.set(key, entry);
      }
    }

    function erase(key) {
      memory.delete(key);
      try {
        localStorage.removeItem(key);
      } catch { /* then it was in memory only */ }
    }

    function keys() {
      try {
        return [...new Set([...Object.keys(localStorage), ...memory.keys()])];
      } catch {
        return [...memory.keys()];
      }
    }

    function read(key) {
      if (memory.has(key)) return memory.get(key);
      try {
        const entry = JSON.parse(localStorage.getItem(key));
        return entry && entry.body && entry.body.client_token ? entry : null;
      } catch {
        return null; // not ours, or damaged: it must not stop the others
      }
    }

    function list(aside) {
      const mine = keys().filter((key) => key.startsWith(prefix) && key.endsWith(SET_ASIDE) === aside);
      return mine.map(read).filter(Boolean).sort((a, b) => a.at - b.at);
    }

    const waiting = () => list(false);
    const setAside = () => list(true);

    return {
      waiting,
      setAside,
      put(kind, body) {
        // Never before one that waits, even if the clock was set back: the last grade is the one that holds.
        const last = Math.max(0, ...waiting().map((entry) => entry.at));
        const entry = { kind, at: Math.max(Date.now(), last + 1), failures: 0, body: { client_token: newToken(), ...body } };
        write(keyOf(entry), entry);
      },
      remove: (entry) => erase(keyOf(entry)),
      // The document that another tab has judged or sent the judgment of: "" if a storage event is not about that.
      tokenOf({ key, newValue, oldValue }) {
        if (!key || !key.startsWith(prefix) || key.endsWith(SET_ASIDE)) return "";
        try {
          const { kind, body } = JSON.parse(newValue || oldValue);
          return kind === "submit" ? body.token : "";
        } catch {
          return "";
        }
      },
      // Count a failure of the server's on this entry; answers how many there have been.
      failed(entry) {
        const counted = { ...entry, failures: (entry.failures || 0) + 1 };
        if (read(keyOf(entry))) write(keyOf(entry), counted); // unless another tab got it through meanwhile
        return counted.failures;
      },
      putAside(entry) {
        write(keyOf(entry) + SET_ASIDE, { ...entry, failures: 0 }); // first the copy: a crash in between loses nothing
        erase(keyOf(entry));
      },
      bringBack() {
        for (const entry of setAside()) {
          write(keyOf(entry), entry);
          erase(keyOf(entry) + SET_ASIDE);
        }
      },
      // The item was judged after all: what was set aside for it has no use any more.
      forget(token) {
        for (const entry of setAside()) {
          if (entry.kind === "submit" && entry.body.token === token) erase(keyOf(entry) + SET_ASIDE);
        }
      },
    };
  }

  // ---- talking to the server ---------------------------------------------------------------
  const loggedOut = () => ({
    kind: "login",
    type: "NotAuthenticated",
    status: 403,
    title: touchstone.say("logged out"),
    detail: touchstone.say("logged out text"),
  });

  // Without a session the API answers 403, and so it does when a new login has made this page's CSRF token old.
  function isLoggedOut(status, type, title) {
    if (status === 401) return true;
    if (status !== 403) return false;
    return type.endsWith("NotAuthenticated") || (/(PermissionDenied|Forbidden)$/.test(type) && /^(CSRF|The page has expired)/.test(title));
  }

  // later: the same request may succeed later; fault: so it may, but it may also be this request that the server
  // stumbles over; refused: never; stop: somebody has to do something first.
  function kindOf(response, type) {
    const status = response.status;
    if (status === 500) return "fault";
    if (response.ok || status > 500 || status === 429 || status === 408) return "later";
    if (status === 400 || status === 409) return "refused";
    if (status === 404 && type.endsWith("LeaseUnknown")) return "refused";
    if (status === 403 && type.endsWith("AssessorSuspended")) return "refused";
    return "stop";
  }

  // Answers { data } or { problem: { kind, type, status, wait, title, detail } }: title and detail are for the reader.
  async function ask(csrfToken, url, body) {
    const post = body !== undefined;
    let response;
    try {
      response = await fetch(url, {
        method: post ? "POST" : "GET",
        headers: { Accept: "application/json", ...(post && { "Content-Type": "application/json", "X-CSRFToken": csrfToken }) },
        body: post ? JSON.stringify(body) : undefined,
        credentials: "same-origin",
        cache: "no-store",
        redirect: "manual", // a redirect is the way to the login page
        signal: AbortSignal.timeout(20000),
      });
    } catch {
      return { problem: { kind: "later", type: "", status: 0, title: touchstone.say("no connection"), detail: "" } };
    }
    let data = null;
    try {
      data = await response.json();
    } catch { /* not JSON: told apart by the status below */ }
    if (response.ok && data) return { data };
    const [type, title] = ["type", "title"].map((name) => String((data && data[name]) || ""));
    if (response.type === "opaqueredirect" || isLoggedOut(response.status, type, title)) return { problem: loggedOut() };
    return {
      problem: {
        kind: kindOf(response, type),
        type: type.split("/").pop(),
        wait: Number(response.headers.get("Retry-After")) || 0, // seconds
        status: response.ok ? 0 : response.status, // 200 without JSON: a hotel's network answered, not the server
        ...touchstone.refusal(type, response.status),
      },
    };
  }

  Object.assign(touchstone, { openOutbox, ask });
})();
