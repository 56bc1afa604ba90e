// Keeps the page current: the server sends its parts as HTML when they change.
// Without this file the page is loaded again every few seconds instead.
'use strict';

const $ = id => document.getElementById(id);
const name = document.title;
let stream, timer;

// clock counts milliseconds and never goes back. One of the browser's clocks
// stands still while the machine sleeps, the other may be set: whichever went
// further counts, so that nothing looks younger than it is.
const clock = (() => {
  let passed = 0, wall = Date.now(), steady = performance.now();
  return () => {
    const w = Date.now(), s = performance.now();
    passed += Math.max(w - wall, s - steady, 0);
    [wall, steady] = [w, s];
    return passed;
  };
})();

// What is known of the connection. The node sends something every 1.25 s.
const seen = {
  heard: 0, at: Date.now(), // the node, by clock and by the time of day
  opened: 0, // when it was last tried
  failed: false, // since then
  refused: false, // the node answers, and sends nothing
  hidden: false,
};

// contact decides what the page says of its connection: connected, connecting,
// refused, lost or asleep, and for how long in seconds it has heard nothing.
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

// lasting returns seconds for people, in a piece that no line break divides.
function lasting(s) {
  if (s < 60) return s + '\u00a0s';
  if (s < 3600) return Math.floor(s / 60) + '\u00a0min\u00a0' + s % 60 + '\u00a0s';
  return Math.floor(s / 3600) + '\u00a0h\u00a0' + Math.floor(s / 60) % 60 + '\u00a0min';
}

// lostWords returns what stands under the headline while the node is not heard:
// what happened, what follows from what was heard last, and what to do. until,
// had and longer are empty for a node that had no limit or refused.
function lostWords(state, silent, then, {until, had, longer} = {}) {
  const words = {
    lost: [`Lost contact with this node ${lasting(silent)} ago.`,
      until ? `If it still runs, it serves until ${until} at least, and longer if ${longer}. It had ${had} left when it was last heard.` : '',
      'Look whether its process runs, and whether the network reaches it.'],
    refused: [`This page gets no news of this node for ${lasting(silent)}.`,
      'The node answers, but does not keep this page current.', 'Close other pages of it, and load this one again.'],
    connecting: [`Connecting. Last heard of this node ${lasting(silent)} ago.`, '', ''],
  }[state];
  return {lost: `${words[0]} This page shows its state at ${then}.`, meanwhile: words[1], todo: words[2]};
}

const pills = {
  connected: 'page connected', connecting: 'page connecting', asleep: 'page asleep',
  refused: 'page not updated', lost: 'page not connected',
};

// tell shows what contact decides. The banner comes before all else, and what
// stands below it is marked as past.
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
  if ($(id).textContent !== words) $(id).textContent = words; // it may be read aloud
}

// put replaces a part, and leaves the focus where it was.
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
  const mine = stream = new EventSource('/page/live' + (worker ? '?worker=' + encodeURIComponent(worker) : ''));
  stream.onmessage = event => {
    Object.assign(seen, {heard: clock(), at: Date.now(), failed: false, refused: false});
    for (const [id, html] of Object.entries(JSON.parse(event.data))) put(id, html);
    title();
    tell();
  };
  stream.onerror = async () => {
    seen.failed = true;
    if (stream === mine && mine.readyState === EventSource.CLOSED) { // else it tries by itself
      clearTimeout(timer);
      timer = setTimeout(open, 2000);
      seen.refused = await answers();
    }
    tell();
  };
  tell();
}

// answers reports whether the node says anything at all.
async function answers() {
  try {
    await fetch(location.origin + '/livez', {signal: AbortSignal.timeout(2000)});
    return true;
  } catch {
    return false;
  }
}
setInterval(tell, 500);
document.addEventListener('visibilitychange', open);
addEventListener('pagehide', () => stream?.close());
addEventListener('pageshow', event => { if (event.persisted) open(); });

// What is asked for stands in the address, so that it can be sent to others.
// (By a part of it: the whole may begin with a password, which no script gets.)
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
  const a = event.target.closest('a[href^="/?worker="]');
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
      html = await (await fetch(location.origin + '/page/decode/' + encodeURIComponent(id))).text();
    } catch {
      html = '<p class="bad">no answer from this node</p>';
    }
  }
  if (turn === asked) put('decoded', html);
}
$('apart').addEventListener('submit', event => { event.preventDefault(); decode(); });
$('id').addEventListener('input', decode);

// The map is one stop for the tab key; arrows move on it.
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
