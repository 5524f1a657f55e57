import { setTimeout as delay } from 'node:timers/promises';
import { signsOfLife } from './sign-of-life.js';

async function* slowly(pausesMs: number[]): AsyncGenerator<Buffer> {
  for (const pause of pausesMs) {
    await delay(pause, undefined, { ref: pause < 1_000 });
    yield Buffer.from(String(pause));
  }
}

async function collected(source: AsyncIterable<Buffer>): Promise<string[]> {
  const chunks: string[] = [];
  for await (const chunk of source) chunks.push(chunk.toString());
  return chunks;
}

test('chunks pass as they come, each one a sign of life', async () => {
  let signs = 0;
  expect(await collected(signsOfLife(slowly([0, 1, 2]), () => signs++, 1_000))).toEqual(['0', '1', '2']);
  expect(signs).toBe(3);
});

test('a sender that falls silent is given up, and told so', async () => {
  await expect(collected(signsOfLife(slowly([0, 60_000]), () => undefined, 20))).rejects.toMatchObject({
    status: 408,
    type: 'upload-stalled',
  });
});
