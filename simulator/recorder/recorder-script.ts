/**
 * The script in the provider's browser. It records a tone instead of a microphone, stores the recording in this browser
 * until it is uploaded, and uploads it to a pre-signed URL, as the real recorder does.
 */
const SHARED = `
const main = document.querySelector('[data-provider]');
const { provider } = main.dataset;
const shelf = 'unuploaded:' + provider;
const kept = () => JSON.parse(localStorage.getItem(shelf) || '[]');
const keep = (recordings) => localStorage.setItem(shelf, JSON.stringify(recordings));
const put = (recording) => keep([...kept().filter(({ id }) => id !== recording.id), recording]);
const forget = (id) => keep(kept().filter((recording) => recording.id !== id));
const status = document.querySelector('[role=status]');
const tell = (text, kind = '') => Object.assign(status, { textContent: text, className: kind });
const clockTime = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 19);

async function json(path, body) {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message);
  return answer;
}

/** A WAV file of a soft tone: 8 kHz, 8 bit, mono. */
function tone(seconds) {
  const samples = new Uint8Array(8000 * seconds).map((_, at) => 128 + 12 * Math.sin(at / 6));
  const head = new DataView(new ArrayBuffer(44));
  const text = (at, word) => [...word].forEach((letter, index) => head.setUint8(at + index, letter.charCodeAt(0)));
  text(0, 'RIFF'); head.setUint32(4, 36 + samples.length, true); text(8, 'WAVEfmt ');
  head.setUint32(16, 16, true); head.setUint16(20, 1, true); head.setUint16(22, 1, true);
  head.setUint32(24, 8000, true); head.setUint32(28, 8000, true); head.setUint16(32, 1, true);
  head.setUint16(34, 8, true); text(36, 'data'); head.setUint32(40, samples.length, true);
  return new Blob([head, samples], { type: 'audio/wav' });
}

async function upload(recording) {
  const { uploadUrl, fileUrl } = await json('/recorder/uploads', { fileName: recording.id + '.wav' });
  const sent = await fetch(uploadUrl, { method: 'PUT', body: tone(recording.seconds) });
  if (!sent.ok) throw new Error('The upload was refused.');
  const { sessionId } = await json('/recorder/sessions', {
    contractId: recording.contractId,
    fileUrl,
    date: recording.startedAt,
  });
  forget(recording.id);
  return sessionId;
}
`;

/** For /recorder: starts, stops and uploads, then shows the link back. */
export const RECORDER_SCRIPT = `${SHARED}
const [start, stop] = [document.querySelector('#start'), document.querySelector('#stop')];
const clock = document.querySelector('output');
let recording;
let ticking;

start.addEventListener('click', () => {
  recording = { id: crypto.randomUUID(), contractId: main.dataset.contract, startedAt: new Date().toISOString(), seconds: 0 };
  ticking = setInterval(() => {
    recording.seconds += 1;
    clock.textContent = clockTime(recording.seconds);
    put(recording);
  }, 1000);
  start.disabled = true;
  stop.disabled = false;
  tell('Recording. It stays in this browser until it is uploaded.');
});

stop.addEventListener('click', async () => {
  clearInterval(ticking);
  stop.disabled = true;
  recording.seconds = Math.max(1, recording.seconds);
  put(recording);
  tell('Uploading …');
  try {
    tell('Uploaded. Processing of session ' + (await upload(recording)) + ' has started.', 'done');
    document.querySelector('#back')?.removeAttribute('hidden');
  } catch (error) {
    tell('Not uploaded: ' + error.message + ' It is listed under unuploaded sessions.', 'fault');
  }
});
`;

/** For /unuploaded-sessions: lists this provider's recordings in this browser. */
export const UNUPLOADED_SCRIPT = `${SHARED}
const list = document.querySelector('ul');
function show() {
  list.replaceChildren(...kept().map((recording) => {
    const item = document.createElement('li');
    const button = document.createElement('button');
    button.textContent = 'Finish upload';
    button.addEventListener('click', async () => {
      button.disabled = true;
      try {
        tell('Uploaded. Processing of session ' + (await upload(recording)) + ' has started.', 'done');
      } catch (error) {
        tell('Not uploaded: ' + error.message, 'fault');
      }
      show();
    });
    item.append(new Date(recording.startedAt).toLocaleString() + ', ' + clockTime(recording.seconds) + ' long', button);
    return item;
  }));
  if (!kept().length) list.textContent = 'None on this device.';
}
show();
`;
