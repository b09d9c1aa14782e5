// Going back through one's last judgments: those of this page at once, earlier ones from the server.
"use strict";

touchstone.openReview = ({ fetchHistory }) => {
  const MOST = 20;
  let mine = []; // judged in this page, newest first, as the server's history has them
  let list = null; // what one goes through; null while not going back
  let index = 0;
  let isWhole = false; // the server's history is in the list
  let turn = 0; // an answer of the server to a question that has been left is not shown

  const isOf = (token) => (one) => one.token === token;

  // What was judged here and is not sent yet, the server cannot know; of the rest it knows the newest state.
  function merged(known, judgments, isWaiting) {
    const theirs = new Map(judgments.map((one) => [one.token, one]));
    const newest = known.map((one) => (isWaiting(one.token) ? one : theirs.get(one.token) || one));
    return [...newest, ...judgments.filter((one) => !known.some(isOf(one.token)))].slice(0, MOST);
  }

  return {
    item: () => (list ? list[index] : null),
    steps: () => index + 1,
    last: () => mine[0] || null,
    leave() {
      list = null;
      turn += 1;
    },
    // A new judgment, or another one of the same document: it stays in its place.
    judged(item, verdict) {
      const one = { ...item, grade: null, obstacle: "", ...verdict };
      mine = mine.some(isOf(item.token)) ? mine.map((old) => (old.token === item.token ? one : old)) : [one, ...mine].slice(0, MOST);
    },
    refused(token) {
      mine = mine.filter((one) => one.token !== token);
    },
    // One step back. Answers { problem }, { isEnd: true } if there is nothing further, or {}.
    async back(isWaiting) {
      const next = list ? index + 1 : 0;
      let known = list || [...mine];
      let whole = list !== null && isWhole;
      if (next >= known.length && !whole) {
        const asked = turn;
        const { data, problem } = await fetchHistory();
        if (asked !== turn) return {};
        if (problem) return { problem };
        known = merged(known, data.judgments, isWaiting);
        whole = true;
      }
      if (next >= known.length) return { isEnd: true };
      [list, isWhole, index] = [known, whole, next];
      return {};
    },
  };
};
