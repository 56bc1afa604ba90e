// This script keeps the page current: it fetches the page every 2 s and replaces the parts.
// Without scripts, the browser reloads the whole page every 5 s instead.
'use strict';

const $ = id => document.getElementById(id);
const parts = ['serves', 'left', 'wrong', 'nodes', 'node', 'charts', 'minutes', 'clocks', 'sequences', 'events'];
const name = document.title;
// heard is the time of the last update, by performance.now() and by the time of day. why is empty
// after an update, else lost or refused: the node answers, without updates.
let heard = performance.now(), at = new Date(), why = '', busy = false;

async function refresh() {
  if (document.hidden || busy) return;
  busy = true;
  try {
    // An address may begin with a password, which fetch refuses.
    const answer = await fetch(location.origin + location.pathname + location.search, {signal: AbortSignal.timeout(4000)});
    if (answer.ok) {
      const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
      for (const id of parts) put(id, fresh.getElementById(id)?.innerHTML ?? '');
      [heard, at, why] = [performance.now(), new Date(), ''];
    } else why = 'refused';
  } catch {
    why = 'lost';
  }
  busy = false;
  tell();
}

// put replaces a part of the page, and keeps the scroll position and the focus. A screen reader
// may announce every write, so equal text is not written again.
function put(id, html) {
  const part = $(id);
  if (part.innerHTML === html) return;
  const top = part.querySelector('.events')?.scrollTop;
  const link = part.contains(document.activeElement) && document.activeElement.getAttribute('href');
  part.innerHTML = html;
  if (top) part.querySelector('.events').scrollTop = top;
  if (link) part.querySelector(`a[href="${CSS.escape(link)}"]`)?.focus({preventScroll: true});
}

// lasting formats seconds.
function lasting(s) {
  return s < 60 ? s + ' s' : s < 3600 ? Math.floor(s / 60) + ' min ' + s % 60 + ' s' : Math.floor(s / 3600) + ' h ' + Math.floor(s / 60) % 60 + ' min';
}

// tell shows a banner at the top while updates are missing: what happened, what the node does if it
// still runs, and what to do. It marks everything below as past.
function tell() {
  const silent = Math.max(1, Math.round((performance.now() - heard) / 1000));
  const past = !document.hidden && silent > 4;
  const then = at.toISOString().slice(11, 19);
  text('link', past ? 'page not connected' : why ? 'page connecting' : 'page connected');
  $('link').dataset.state = past ? 'lost' : '';
  document.documentElement.classList.toggle('past', past);
  document.documentElement.style.setProperty('--then', `" as of ${then} UTC"`);
  $('contact').hidden = !past;
  const word = document.querySelector('[data-word]');
  document.title = (past ? 'no contact' : word ? word.dataset.word : '') + ': ' + name;
  text('then', then + ' UTC');
  if (!past) return;
  const [what, todo] = {
    lost: [`Lost contact with this node ${lasting(silent)} ago.`, 'Check whether the process runs and whether the network reaches it.'],
    refused: [`No updates from this node for ${lasting(silent)}. The node answers, but does not update this page.`, 'Reload this page.'],
    '': [`Connecting. The last update from this node came ${lasting(silent)} ago.`, ''],
  }[why];
  text('lost', `${what} This page shows the node's state at ${then}.`);
  text('todo', todo);
  $('do').hidden = !todo;
}

function text(id, words) {
  if ($(id).textContent !== words) $(id).textContent = words;
}

setInterval(refresh, 2000);
setInterval(tell, 500);
document.addEventListener('visibilitychange', refresh);
tell();
