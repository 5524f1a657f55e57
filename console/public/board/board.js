/*
 * Beside bull-board's own scripts: leads to the console's sign-in when the session has ended, and names what bull-board
 * shows as an icon alone.
 */

const { send } = XMLHttpRequest.prototype;
XMLHttpRequest.prototype.send = function (...body) {
  this.addEventListener('load', () => {
    if (this.status === 401) location.assign('/console/queues');
  });
  return send.apply(this, body);
};

/** Where the icon's own name says too little. */
const NAMES = {
  maximize: 'full screen',
  minimize: 'leave full screen',
  'circle-user': 'links',
  'ellipsis-vertical': 'more',
};

/** A button's icon is its name; a label that hides the text that is seen is none (WCAG 2.2, 2.5.3). */
function nameButtons() {
  for (const button of document.querySelectorAll('button')) {
    const text = button.textContent.trim();
    const label = button.getAttribute('aria-label') ?? button.title;
    const [, icon] = /\blucide-([a-z-]+)/.exec(button.querySelector('svg')?.getAttribute('class') ?? '') ?? [];
    if (!text && !label && icon) button.setAttribute('aria-label', NAMES[icon] ?? icon.replaceAll('-', ' '));
    if (text && label && !label.toLowerCase().includes(text.toLowerCase())) button.removeAttribute('aria-label');
  }
}

new MutationObserver(nameButtons).observe(document.body, {
  subtree: true,
  childList: true,
  attributeFilter: ['aria-label'],
});
