import { useWorld } from '../world/use-world.js';

const world = useWorld();

/** The codes of all causes that health names. */
async function codes(): Promise<string[]> {
  const { body } = await world.call<{ causes?: { code: string }[] }>('GET', '/health/ready');
  return (body.causes ?? []).map(({ code }) => code);
}

test('two limits at a time are a cause, until the processes with one of them are gone', async () => {
  await world.advance('10 s');
  expect(await codes()).not.toContain('processes-differ');
  const other = await world.startAnother({ USER_MANAGEMENT_CALLS_PER_MINUTE: '100' });
  expect(await codes()).toContain('processes-differ');
  await other.app.close();
  expect(await codes()).not.toContain('processes-differ');
});

test('a process that was killed counts for half a minute', async () => {
  await world.startAnother({ USER_MANAGEMENT_CALLS_PER_MINUTE: '100' });
  await world.advance('29 s');
  expect(await codes()).toContain('processes-differ');
  await world.advance('2 s');
  expect(await codes()).not.toContain('processes-differ');
});
