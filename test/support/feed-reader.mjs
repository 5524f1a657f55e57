// Reads the change feed for ever, as an EHR would: it goes on behind the last event of its file, into which it writes
// one line for each event. Arguments: the service's address, the key, the file, `poll` or `stream`.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

const [url, key, file, way] = process.argv.slice(2);
const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
// A line that a kill cut off is not counted as read: it ends without its newline.
let after = lines.length > 1 ? lines.at(-2).split(' ')[0] : '0';
const headers = { authorization: `Bearer ${key}` };

function keep({ cursor, data }) {
  appendFileSync(file, `${cursor} ${data.writer}/${data.number}\n`);
  after = cursor;
}

async function poll() {
  const answer = await fetch(`${url}/v1/events?after=${after}&limit=50`, { headers: { ...headers, prefer: 'wait=5' } });
  if (answer.status === 503) return; // a service without time for its database; it is asked again
  for (const event of (await answer.json()).items) keep(event);
}

async function stream() {
  const answer = await fetch(`${url}/v1/events`, {
    headers: { ...headers, accept: 'text/event-stream', 'last-event-id': after },
  });
  let text = '';
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const blocks = text.split('\n\n');
    text = blocks.pop();
    for (const block of blocks) {
      const data = /^data: (.*)$/m.exec(block);
      if (data) keep(JSON.parse(data[1]));
    }
  }
}

for (;;) await (way === 'poll' ? poll() : stream());
