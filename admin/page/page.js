// Keeps the page current: the server sends its parts as HTML when they change.
// Without this file the page is loaded again every few seconds instead.
'use strict';

const $ = id => document.getElementById(id);
const link = $('link');
const name = document.title;
let stream, timer, last = 0;

function say(word, state) {
  if (link.textContent !== word) link.textContent = word; // it is read aloud
  link.className = state;
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
  if (id === 'verdict') {
    const word = part.querySelector('[data-word]');
    document.title = (word ? word.dataset.word + ': ' : '') + name;
  }
}

function open() {
  clearTimeout(timer);
  stream?.close();
  if (document.hidden) return say('asleep', '');
  const worker = new URLSearchParams(location.search).get('worker');
  stream = new EventSource('/page/live' + (worker ? '?worker=' + encodeURIComponent(worker) : ''));
  stream.onmessage = event => {
    last = Date.now();
    say('live', 'ok');
    for (const [id, html] of Object.entries(JSON.parse(event.data))) put(id, html);
  };
  stream.onerror = () => {
    say(last ? 'no answer from this node since ' + new Date(last).toISOString().slice(11, 19) : 'no answer from this node', 'cut');
    if (stream.readyState !== EventSource.CLOSED) return; // it tries by itself
    clearTimeout(timer);
    timer = setTimeout(open, 2000);
  };
}
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
