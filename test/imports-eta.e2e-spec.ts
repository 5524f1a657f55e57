import { setTimeout as delay } from 'node:timers/promises';
import type { ImportView } from '../src/imports/import-view.js';
import { clientLine, clientsCsv, importOf, many, providerLine, providersCsv } from './support/bulk.js';
import { useMirrors } from './support/service.js';

const newMirror = useMirrors();

/** Four times the platform's pace, so that a minute's import takes some seconds. */
const CALLS_PER_MINUTE = 1_200;
const PROVIDERS = 10;
const CLIENTS = 140;
/** A quarter of the providers and half of the clients are there already: in the files they stand first. */
const isThere = (id: string) => Number(id.split('-')[1]) <= (id.startsWith('p') ? PROVIDERS / 4 : CLIENTS / 2);
/** Milliseconds between two counts of outcomes, two looks of the test, and an answer: the end is seen late by so much. */
const LUCK_MS = 700 + 100 + 100;

test('from one tenth of an import on, the time that is left is told within a tenth of the truth', async () => {
  const mirror = await newMirror({ calls: CALLS_PER_MINUTE, platform: { latencyMs: [20, 100] } });
  const service = await mirror.start();
  const providers = many(PROVIDERS, 'p');
  const clients = many(CLIENTS, 'c');
  for (const id of [...providers, ...clients].filter(isThere)) {
    const role = id.startsWith('p') ? 'HealthcareProvider' : 'Client';
    mirror.simulator.state.users.add({
      role,
      email: `${id}@example.org`,
      firstName: 'A',
      lastName: 'B',
      providerUserIds: [],
    });
  }
  const { id } = await service.startImport('kind=clients', [
    providersCsv(providers.map((one) => providerLine(one))),
    clientsCsv(
      clients.map((one, at) => {
        // Two providers each: who is there takes two calls, who is not takes three.
        const two = [providers[at % PROVIDERS], providers[(at + 1) % PROVIDERS]] as [string, string];
        return clientLine(one, two, at % 10 === 9 ? '' : `${one}@example.org`);
      }),
    ),
  ]);
  const looks: { at: number; view: ImportView }[] = [];
  for (let ended = false; !ended; await delay(100)) {
    const view = await importOf(service, id);
    looks.push({ at: Date.now(), view });
    ended = view.state === 'completed';
  }
  const endedAt = looks.at(-1)?.at ?? 0;
  const running = looks.filter(({ view }) => view.state === 'running');
  const begunAt = running[0]?.at ?? 0;
  const tenth = begunAt + (endedAt - begunAt) / 10;
  const errors = running
    .filter(({ at }) => at >= tenth)
    .map(({ at, view }) => ({
      left: (endedAt - at) / 1_000,
      eta: view.etaSeconds ?? Number.NaN,
    }));
  const misses = errors.filter(({ left, eta }) => !(Math.abs(eta - left) <= 0.1 * left + LUCK_MS / 1_000));
  const far = errors.filter(({ left }) => left > 3);
  const worst = Math.max(...far.map(({ left, eta }) => Math.abs(eta - left) / left));
  console.log(
    `${errors.length} estimates in ${endedAt - begunAt} ms; ${Math.round(worst * 100)} % off at most, the last 3 s apart`,
  );
  expect(looks.at(-1)?.view.calls.made).toBeGreaterThan(300);
  expect(running.length).toBeGreaterThan(30);
  expect(misses).toEqual([]);
  expect(looks.at(-1)?.view.etaSeconds).toBeNull();
});
