import type { Launch } from './launch.js';
import { escapeHtml, maskedToken, pageFrame } from './page-frame.js';

/** The recorder page with its parameters. It never shows the complete token. */
export function recorderPage(launch: Launch, sessionToken: string): string {
  const shown: [string, string][] = [
    ['variant', launch.variant],
    ['contractId', launch.contractId],
    ['provider', launch.providerUserId],
    ['sessionToken', `${maskedToken(sessionToken)} (used up)`],
    ['redirectUrl', launch.redirectUrl ?? 'none'],
  ];
  const facts = shown.map(([name, value]) => `<dt>${name}</dt><dd>${escapeHtml(value)}</dd>`).join('');
  const back = launch.redirectUrl
    ? `<p><a class="button" id="back" href="${escapeHtml(launch.redirectUrl)}" hidden>Back to your records</a></p>`
    : '';
  return pageFrame(
    'Recorder',
    `<div data-provider="${launch.providerUserId}" data-contract="${launch.contractId}">
<h1>${launch.variant === 'virtual' ? 'Record an online session' : 'Record a session in person'}</h1>
<p class="soft">Simulated recorder: it records a tone, not your microphone.</p>
<dl>${facts}</dl>
${launch.variant === 'virtual' ? CAPTURE_MODES : ''}
<output aria-label="Recorded time">00:00:00</output>
<p class="buttons"><button id="start">Start recording</button> <button id="stop" disabled>Stop and upload</button></p>
<p role="status" aria-live="polite"></p>
${back}
</div>
<script src="/recorder/recorder.js"></script>`,
  );
}

/** Two ways to capture an online session (spec, Audio recorder web routes, rule 6). */
const CAPTURE_MODES = `<fieldset><legend>How do you listen?</legend>
<label><input type="radio" name="mode" checked> <span>With headphones: share the call's audio (recommended; needs Chrome,
Edge or another Chromium-based browser; desktop apps on Windows only)</span></label>
<label><input type="radio" name="mode"> <span>Without headphones</span></label>
</fieldset>`;

/** The page with this provider's recordings that are still in this browser. */
export function unuploadedPage(providerUserId: string): string {
  return pageFrame(
    'Unuploaded sessions',
    `<div data-provider="${providerUserId}">
<h1>Sessions that were not uploaded</h1>
<p class="soft">Only those that you recorded on this device and in this browser.</p>
<ul></ul>
<p role="status" aria-live="polite"></p>
</div>
<script src="/recorder/unuploaded.js"></script>`,
  );
}
