// This script keeps the page current: the server sends the page's parts as HTML when they
// change. Without scripts, the browser reloads the whole page every 5 s instead.
'use strict';

const $ = id => document.getElementById(id);
const name = document.title;
let stream, timer;

// clock returns milliseconds since the page was loaded, and never goes back. performance.now
// may stop while the machine sleeps, and Date.now may be set. The larger step of the two
// counts, so that no age is understated.
const clock = (() => {
  let passed = 0, wall = Date.now(), steady = performance.now();
  return () => {
    const w = Date.now(), s = performance.now();
    passed += Math.max(w - wall, s - steady, 0);
    [wall, steady] = [w, s];
    return passed;
  };
})();

// seen is the state of the connection. The node sends an update every 1.25 s.
const seen = {
  // time of the last update, by clock and by the time of day
  heard: 0, at: Date.now(),
  opened: 0, // time of the last try
  failed: false, // since then
  refused: false, // the node answers, without updates
  hidden: false,
};

// contact returns the state of the connection (connected, connecting, refused, lost or
// asleep) and the seconds since the last update, at least 1.
function contact(now, s) {
  const silent = now - s.heard, trying = now - s.opened < 2000 && !s.failed;
  let state = 'connected';
  if (s.hidden) state = 'asleep';
  else if (s.refused) state = 'refused';
  else if (silent > 4000) state = trying ? 'connecting' : 'lost';
  else if (s.failed) state = silent > 2000 ? 'lost' : 'connecting';
  else if (s.heard <= s.opened) state = 'connecting';
  return {state, silent: Math.max(1, Math.round(silent / 1000))};
}

// lasting formats seconds, with no-break spaces.
function lasting(s) {
  if (s < 60) return s + '\u00a0s';
  if (s < 3600) return Math.floor(s / 60) + '\u00a0min\u00a0' + s % 60 + '\u00a0s';
  return Math.floor(s / 3600) + '\u00a0h\u00a0' + Math.floor(s / 60) % 60 + '\u00a0min';
}

// lostWords returns the text below the headline while no updates come: what happened
// (lost), what the node does if it still runs (meanwhile), and what the reader can do
// (todo). until, had and longer are empty for a node that had no time limit or refused.
function lostWords(state, silent, then, {until, had, longer} = {}) {
  const words = {
    lost: [`Lost contact with this node ${lasting(silent)} ago.`,
      until ? `If the node still runs, it serves at least until ${until}, and longer if ${longer}. It had ${had} left at the last update.` : '',
      'Check whether the process runs and whether the network reaches it.'],
    refused: [`No updates from this node for ${lasting(silent)}.`,
      'The node answers, but does not update this page.', 'Close other status pages of this node, then reload this one.'],
    connecting: [`Connecting. The last update from this node came ${lasting(silent)} ago.`, '', ''],
  }[state];
  return {lost: `${words[0]} This page shows the node's state at ${then}.`, meanwhile: words[1], todo: words[2]};
}

const pills = {
  connected: 'page connected', connecting: 'page connecting', asleep: 'page paused',
  refused: 'page not updated', lost: 'page not connected',
};

// tell shows the state that contact returns. While updates are missing, it shows a banner
// at the top and marks everything below as past.
function tell() {
  const {state, silent} = contact(clock(), seen);
  const past = state === 'refused' || state === 'lost' || state === 'connecting' && silent > 4;
  const then = new Date(seen.at).toISOString().slice(11, 19);
  text('link', pills[state]);
  $('link').dataset.state = state;
  document.documentElement.classList.toggle('past', past);
  document.documentElement.style.setProperty('--then', `" as of ${then} UTC"`);
  $('contact').hidden = !past;
  text('then', then + ' UTC');
  if (!past) return;
  document.title = 'no contact: ' + name;
  const words = lostWords(state, silent, then, document.querySelector('#left [data-until]')?.dataset);
  for (const [id, said] of Object.entries(words)) text(id, said);
  $('do').hidden = !words.todo;
}

function text(id, words) {
  // A screen reader may announce every write, so equal text is not written again.
  if ($(id).textContent !== words) $(id).textContent = words;
}

// put replaces a part of the page, and keeps the focus and the scroll position of events.
function put(id, html) {
  const part = $(id);
  if (!part) return;
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const again = focused && (focused.id ? '#' + focused.id : focused.getAttribute('href') ? `a[href="${CSS.escape(focused.getAttribute('href'))}"]` : '');
  const list = part.querySelector('.events');
  const top = list ? list.scrollTop : 0;
  part.innerHTML = html;
  if (top) part.querySelector('.events').scrollTop = top;
  if (id === 'map') rove();
  if (again) part.querySelector(again)?.focus({preventScroll: true});
  if (id === 'serves') title();
}

function title() {
  const word = document.querySelector('[data-word]');
  document.title = (word ? word.dataset.word + ': ' : '') + name;
}

function open() {
  clearTimeout(timer);
  stream?.close();
  seen.hidden = document.hidden;
  if (document.hidden) return tell();
  Object.assign(seen, {opened: clock(), failed: false});
  const worker = new URLSearchParams(location.search).get('worker');
  const mine = stream = new EventSource('page/live' + (worker ? '?worker=' + encodeURIComponent(worker) : ''));
  stream.onmessage = event => {
    Object.assign(seen, {heard: clock(), at: Date.now(), failed: false, refused: false});
    for (const [id, html] of Object.entries(JSON.parse(event.data))) put(id, html);
    title();
    tell();
  };
  stream.onerror = async () => {
    seen.failed = true;
    // In any other state the EventSource reconnects by itself.
    if (stream === mine && mine.readyState === EventSource.CLOSED) {
      clearTimeout(timer);
      timer = setTimeout(open, 2000);
      seen.refused = await answers();
    }
    tell();
  };
  tell();
}

// answers reports whether the node answers HTTP requests at all.
async function answers() {
  try {
    await fetch(location.origin + location.pathname + 'livez', {signal: AbortSignal.timeout(2000)});
    return true;
  } catch {
    return false;
  }
}
setInterval(tell, 500);
document.addEventListener('visibilitychange', open);
addEventListener('pagehide', () => stream?.close());
addEventListener('pageshow', event => { if (event.persisted) open(); });

// ask keeps the query in the page's address, so that a reader can send the link to others.
// It passes the query alone. An address may begin with a password, which browsers hide from
// scripts, and they refuse to replace the address by one without it.
function ask(key, value) {
  const query = new URLSearchParams(location.search);
  if (value) query.set(key, value);
  else query.delete(key);
  history.replaceState(null, '', '?' + query);
}

function pick(worker) {
  ask('worker', worker);
  $('worker').value = worker;
  if (!worker) put('detail', '');
  open();
}
$('pick').addEventListener('submit', event => {
  event.preventDefault();
  pick($('worker').value.trim());
});
document.addEventListener('click', event => {
  const a = event.target.closest('a[href^="./?worker="]');
  if (!a || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  pick(new URL(a.href).searchParams.get('worker'));
  $('detail').scrollIntoView({block: 'nearest'});
});

let asked = 0;
async function decode() {
  const id = $('id').value.trim(), turn = ++asked;
  ask('id', id);
  let html = '';
  if (id) {
    try {
      html = await (await fetch(location.origin + location.pathname + 'page/decode/' + encodeURIComponent(id))).text();
    } catch {
      html = '<p class="bad">no answer from this node</p>';
    }
  }
  if (turn === asked) put('decoded', html);
}
$('apart').addEventListener('submit', event => { event.preventDefault(); decode(); });
$('id').addEventListener('input', decode);

// The map is one stop for the tab key. Arrow keys move within it.
let at = '';
function cells() { return [...document.querySelectorAll('a.cell')]; }
function rove() {
  const all = cells();
  const here = all.find(a => a.id === at) || all[0];
  for (const a of all) a.tabIndex = a === here ? 0 : -1;
}
function point(a) {
  $('pointed').textContent = a ? a.getAttribute('aria-label') : 'Arrow keys move on the map.';
}
const map = $('map');
map.addEventListener('focusin', event => {
  const a = event.target.closest('a.cell');
  if (!a) return;
  at = a.id;
  rove();
  point(a);
});
map.addEventListener('pointerover', event => point(event.target.closest('a.cell')));
map.addEventListener('keydown', event => {
  const from = event.target.closest('a.cell');
  if (!from) return;
  const all = cells(), i = all.indexOf(from);
  const beside = sign => all.filter(a => sign * (a.offsetTop - from.offsetTop) > 4)
    .sort((a, b) => sign * (a.offsetTop - b.offsetTop) || Math.abs(a.offsetLeft - from.offsetLeft) - Math.abs(b.offsetLeft - from.offsetLeft))[0];
  const to = {
    ArrowRight: () => all[i + 1], ArrowLeft: () => all[i - 1], ArrowDown: () => beside(1), ArrowUp: () => beside(-1),
    Home: () => all[0], End: () => all.at(-1),
  }[event.key]?.();
  if (!to) return;
  event.preventDefault();
  to.focus();
});

rove();
open();
