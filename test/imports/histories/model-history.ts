import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import fc from 'fast-check';
import type { World } from '../../../harness/world/world.js';
import { UserDirectory } from '../../../simulator/users/user-directory.js';
import { Database } from '../../../src/database/database.js';
import { PrismaService } from '../../../src/database/prisma.service.js';
import type { CancellationResponse } from '../../../src/imports/api/import-view.js';
import { RowsToApply } from '../../../src/imports/run/rows-to-apply.repository.js';
import { ADMIN_KEY } from '../../support/app.js';
import type { ImportBody } from '../imports.js';
import { importsIn } from '../imports.js';
import {
  anyFile,
  anyKey,
  anyProviders,
  type File,
  idOf,
  type Key,
  kindOf,
  type Profile,
  profileOf,
} from './model-files.js';

type Mode = 'upsert' | 'snapshot';
interface Upload {
  file: File;
  mode: Mode;
  dryRun: boolean;
}

/** A fault of the next call of an operation: without effect, or with effect and a lost answer. */
const FAULTS = ['refuse', 'commit-then-cut', 'commit-then-500'] as const;

/** What happens to two plans: in which order they are applied, or that the later one is cancelled before the first. */
const ENDINGS = ['in order', 'the later first', 'the later is cancelled'] as const;

/** `which` counts imports from the newest, and open uploads from the oldest. */
export type Command =
  | { do: 'put'; key: Key; name: number; providers: string[] }
  | { do: 'delete'; key: Key }
  | ({ do: 'upload' | 'open' } & Upload)
  | { do: 'again'; which: number; mode: Mode }
  | { do: 'close'; which: number; lost: boolean }
  | { do: 'apply'; which: number; overrides: boolean }
  | { do: 'pause' | 'resume' | 'cancel' | 'retry' | 'damage'; which: number }
  | { do: 'crash'; after: number }
  | { do: 'stop'; which: number; calls: number }
  | { do: 'plans'; first: Upload; second: Upload; ending: (typeof ENDINGS)[number] }
  | { do: 'fault'; operation: string; kind: (typeof FAULTS)[number] }
  | { do: 'applyRows'; count: number }
  | { do: 'call'; times: number }
  | { do: 'settle' };

const which = fc.nat(2);
const upload = {
  file: anyFile,
  mode: fc.constantFrom<Mode>('upsert', 'upsert', 'snapshot'),
  dryRun: fc.nat(3).map((one) => one === 0),
};
const command = <Name extends Command['do'], Rest extends object>(
  name: Name,
  rest: { [K in keyof Rest]: fc.Arbitrary<Rest[K]> },
) => fc.record({ do: fc.constant(name), ...rest }) as unknown as fc.Arbitrary<Extract<Command, { do: Name }>>;

export const anyCommand: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: command('put', { key: anyKey, name: fc.nat(1), providers: anyProviders }) },
  { weight: 3, arbitrary: command('delete', { key: anyKey }) },
  { weight: 6, arbitrary: command('upload', upload) },
  { weight: 2, arbitrary: command('open', upload) },
  { weight: 2, arbitrary: command('again', { which, mode: upload.mode }) },
  { weight: 2, arbitrary: command('close', { which: fc.nat(1), lost: fc.nat(4).map((one) => one === 0) }) },
  { weight: 4, arbitrary: command('apply', { which, overrides: fc.nat(3).map((one) => one > 0) }) },
  { weight: 1, arbitrary: command('pause', { which }) },
  { weight: 1, arbitrary: command('resume', { which }) },
  { weight: 2, arbitrary: command('cancel', { which }) },
  { weight: 1, arbitrary: command('damage', { which }) },
  { weight: 3, arbitrary: command('stop', { which, calls: fc.nat(2) }) },
  {
    weight: 3,
    arbitrary: command('plans', {
      first: fc.record(upload),
      second: fc.record(upload),
      ending: fc.constantFrom(...ENDINGS),
    }),
  },
  { weight: 2, arbitrary: command('crash', { after: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 1, arbitrary: command('retry', { which }) },
  {
    weight: 2,
    arbitrary: command('fault', {
      operation: fc.constantFrom('createProvider', 'createClient', 'createClient', 'setClientProviders'),
      kind: fc.constantFrom(...FAULTS),
    }),
  },
  { weight: 4, arbitrary: command('applyRows', { count: fc.nat(3) }) },
  { weight: 2, arbitrary: command('call', { times: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 2, arbitrary: command('settle', {}) },
);

/** A statement of the EHR outside of imports. */
export interface Said {
  key: Key;
  at: Date;
  profile: Profile | null;
}

/** An import that was accepted. */
export interface SentImport {
  id: string;
  file: File;
  mode: Mode;
}

const OVERRIDES = ['deletes', 'providerRemovals', 'idColumn', 'looksDoubled'];

type AnyTransaction = (...parameters: unknown[]) => Promise<unknown>;

/** Ends the work as a lost connection does, after which the program does not touch the database. */
class Crash extends Error {
  readonly code = '57P01';
}

interface OpenUpload extends Upload {
  sending: ClientRequest;
  rest: string;
}

/** Everything that happened in a history. */
export class History {
  readonly said: Said[] = [];
  readonly imports: SentImport[] = [];
  /** Created and deleted users on the platform. */
  readonly users: { did: 'add' | 'remove'; id: string | undefined }[] = [];
  /** Rows that cannot be applied, by import, file and line. */
  readonly damaged = new Set<string>();
  /** The platform failed, so that clients without an email may need a decision. */
  hasFaults = false;
  /** After how many transactions the process ends. */
  private transactionsLeft = Number.POSITIVE_INFINITY;
  /** How many rows may be applied; undefined: no limit. */
  private room: number | undefined = 0;
  private readonly opened: OpenUpload[] = [];

  constructor(private readonly world: World) {
    const rows = world.get(RowsToApply);
    jest.spyOn(rows, 'next').mockImplementation(async (id) => {
      const rowNos = await RowsToApply.prototype.next.call(rows, id);
      if (this.room === undefined) return rowNos;
      const some = rowNos.slice(0, this.room);
      this.room -= some.length;
      return some;
    });
    for (const each of [world.get(Database), world.get(PrismaService)] as { transaction: AnyTransaction }[]) {
      const transaction = each.transaction.bind(each);
      jest.spyOn(each, 'transaction').mockImplementation(async (...parameters) => {
        const result = await transaction(...parameters);
        this.transactionsLeft -= 1;
        if (this.transactionsLeft === 0) throw new Crash();
        return result;
      });
    }
    const directory = UserDirectory.prototype;
    const { add, remove } = directory;
    jest.spyOn(directory, 'add').mockImplementation(function (this: UserDirectory, user) {
      users.push({ did: 'add', id: user.partnerUserId });
      return add.call(this, user);
    });
    jest.spyOn(directory, 'remove').mockImplementation(function (this: UserDirectory, user) {
      users.push({ did: 'remove', id: user.partnerUserId });
      remove.call(this, user);
    });
    const { users } = this;
  }

  async do(command: Command): Promise<void> {
    const { world } = this;
    const { transition } = importsIn(world);
    switch (command.do) {
      case 'put':
        return this.put(command.key, profileOf(command.key, command.name, command.providers));
      case 'delete':
        return this.delete(command.key);
      case 'upload':
        return this.upload(command);
      case 'open':
        return this.open(command);
      case 'again': {
        const sent = this.imports.at(-1 - command.which);
        return sent && this.upload({ file: sent.file, mode: command.mode, dryRun: false });
      }
      case 'close':
        return this.close(command.which, command.lost);
      case 'fault':
        this.hasFaults = true;
        return world.platform.injectFault({ operation: command.operation, kind: command.kind });
      case 'applyRows':
        this.room = command.count;
        await world.work.imports();
        this.room = 0;
        return;
      case 'crash':
        return this.crash(command.after);
      case 'damage': {
        const { id } = this.imports.at(-1 - command.which) ?? {};
        const rows = await world.sql<{ file: number; line: number }>(
          `UPDATE import_rows SET profile = 'damaged' WHERE import_id = $1 AND phase IS NOT NULL AND says = 'person'
             AND row_no = (SELECT max(row_no) FROM import_rows WHERE import_id = $1 AND phase IS NOT NULL AND says = 'person')
           RETURNING file, line`,
          [id ?? null],
        );
        for (const { file, line } of rows) this.damaged.add(`${id} ${file} ${line}`);
        return;
      }
      case 'stop':
        return this.stop(command.which, command.calls);
      case 'plans':
        return this.plans(command.first, command.second, command.ending);
      case 'cancel': {
        const sent = this.imports.at(-1 - command.which);
        return sent && this.cancel(sent.id);
      }
      case 'call':
        for (let time = 0; time < command.times; time += 1) {
          await world.advance('50 ms');
          await world.work.jobs();
        }
        return;
      case 'settle':
        return this.settle();
      default: {
        const sent = this.imports.at(-1 - command.which);
        if (sent) {
          const confirmed = command.do === 'apply' && command.overrides ? OVERRIDES : undefined;
          const { status } = await transition(sent.id, command.do, confirmed);
          if (![200, 202, 409].includes(status)) throw new Error(`${command.do} was answered ${status}.`);
        }
      }
    }
  }

  /** Ends everything that is open, and works until nothing is left to do. */
  async end(): Promise<void> {
    const { transition, show } = importsIn(this.world);
    while (this.opened.length > 0) await this.close(0, false);
    await this.settle();
    for (const { id } of this.imports) {
      const { state } = await show(id);
      if (state === 'planned') await transition(id, 'apply', OVERRIDES);
      if (state === 'paused') await transition(id, 'resume');
    }
    this.world.platform.release();
    // Repeated calls, and the lookup of what a lost create made.
    for (const span of this.hasFaults ? (['16 s', '2 min', '15 min'] as const) : (['16 s'] as const)) {
      await this.settle();
      await this.world.advance(span);
    }
    await this.settle();
    if (!this.hasFaults) return;
    for (const { id } of this.imports) await transition(id, 'retry');
    await this.settle();
  }

  /** The process ends after some of its transactions on imports, and a new one finds an empty queue. */
  private async crash(after: number): Promise<void> {
    this.room = undefined;
    this.transactionsLeft = after;
    await this.world.work.imports().catch((error: unknown) => {
      if (!(error instanceof Crash)) throw error;
    });
    this.transactionsLeft = Number.POSITIVE_INFINITY;
    this.room = 0;
    this.world.forgetJobs();
  }

  /** Cancels an import between its application and its last call. */
  private async stop(which: number, calls: number): Promise<void> {
    const sent = this.imports.at(-1 - which);
    if (!sent) return;
    await importsIn(this.world).transition(sent.id, 'apply', OVERRIDES);
    await this.applyAll();
    for (let call = 0; call < calls; call += 1) await this.world.work.nextJob();
    await this.cancel(sent.id);
  }

  /** Makes two plans, and applies them one after the other. */
  private async plans(first: Upload, second: Upload, ending: (typeof ENDINGS)[number]): Promise<void> {
    const { transition } = importsIn(this.world);
    const before = this.imports.length;
    for (const one of [first, second]) await this.upload({ ...one, dryRun: true });
    await this.applyAll();
    const [earlier, later] = this.imports.slice(before);
    if (!earlier || !later) return;
    const order = ending === 'in order' ? [earlier, later] : [later, earlier];
    for (const { id } of order) {
      await transition(id, 'apply', OVERRIDES);
      await this.applyAll();
      if (id === later.id && ending === 'the later is cancelled') await this.cancel(id);
    }
  }

  private async applyAll(): Promise<void> {
    this.room = undefined;
    await this.world.work.imports();
    this.room = 0;
  }

  /** Cancels an import, and compares what happens with what its text says. */
  private async cancel(id: string): Promise<void> {
    const { world } = this;
    const { transition, rows, show } = importsIn(world);
    const { body: said } = await world.call<CancellationResponse>('GET', `/v1/imports/${id}/cancellation`);
    const before = (await rows(id, 'code=cancelled')).length;
    const { status } = await transition(id, 'cancel');
    if (status === 409) return;
    if (status !== 200) throw new Error(`cancel was answered ${status}.`);
    await world.work.imports();
    const all = await rows(id);
    const withdrawn = all.filter(({ code }) => code === 'cancelled').length - before;
    expect(withdrawn).toBe(said.skipped + said.withdrawnPeople + said.withdrawnDeletions);
    const deletions = all.filter(
      ({ planned, outcome }) => planned === 'delete' && ['pending', 'deleted'].includes(outcome),
    );
    expect(deletions.length).toBeLessThanOrEqual(said.completedDeletions);
    expect((await show(id)).state).toBe('cancelled');
  }

  private async settle(): Promise<void> {
    this.room = undefined;
    await this.world.settle();
    this.room = 0;
  }

  private async put(key: Key, profile: Profile): Promise<void> {
    const { providers, email, ...names } = profile;
    const body = { ...names, ...(email && { email }), ...(kindOf(key) === 'client' && { providers }) };
    const { status } = await this.world.call('PUT', `/v1/${kindOf(key)}s/${idOf(key)}`, { body });
    if (status < 300) this.said.push({ key, at: this.world.now(), profile });
    else if (status !== 422) throw new Error(`PUT ${key} was answered ${status}.`);
  }

  private async delete(key: Key): Promise<void> {
    const { status } = await this.world.call('DELETE', `/v1/${kindOf(key)}s/${idOf(key)}`);
    if (status < 300 || status === 404) this.said.push({ key, at: this.world.now(), profile: null });
    else if (status !== 409) throw new Error(`DELETE ${key} was answered ${status}.`);
  }

  private async upload({ file, mode, dryRun }: Upload): Promise<void> {
    const { upload } = importsIn(this.world);
    const { status, body } = await upload(queryOf({ file, mode, dryRun }), file.type, file.text);
    await this.took(status, body, file, mode);
  }

  private async took(status: number, body: ImportBody, file: File, mode: Mode): Promise<void> {
    if (status === 202) this.imports.push({ id: body.id, file, mode });
    else if (status !== 422 && status !== 503)
      throw new Error(`The upload was answered ${status}: ${JSON.stringify(body)}`);
    // A header was cut.
    if (body.state === 'needs-mapping') await importsIn(this.world).transition(body.id, 'cancel');
  }

  /** Sends the first half of a file. The upload has begun when this returns. */
  private async open(upload: Upload): Promise<void> {
    if (this.opened.length === 1) return; // the service answers 503 to a second one
    await this.world.advance('1 ms');
    const { file } = upload;
    const sending = request(`${this.world.url}/v1/imports?${queryOf(upload)}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${ADMIN_KEY}`,
        'content-type': file.type,
        'content-length': Buffer.byteLength(file.text),
      },
    });
    sending.on('error', () => undefined);
    const half = Math.floor(file.text.length / 2);
    sending.write(file.text.slice(0, half));
    this.opened.push({ ...upload, sending, rest: file.text.slice(half) });
    await this.world.eventually('the upload has begun', async () => {
      const begun = await this.world.sql(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'notebridge-uploads'
           AND state = 'idle in transaction' AND query NOT LIKE 'SELECT pg_advisory%' AND query <> 'BEGIN'`,
      );
      return begun.length === this.opened.length || undefined;
    });
  }

  private async close(place: number, isLost: boolean): Promise<void> {
    const [upload] = this.opened.splice(place, 1);
    if (!upload) return;
    await this.world.advance('1 ms');
    const { sending, rest, file, mode } = upload;
    if (isLost) {
      sending.destroy();
      await this.world.eventually('the upload has ended', async () => {
        const open = await this.world.sql(
          `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'notebridge-uploads'
             AND state LIKE 'idle in transaction%'`,
        );
        return open.length === this.opened.length || undefined;
      });
      return;
    }
    const answered = once(sending, 'response') as Promise<[IncomingMessage]>;
    sending.end(rest);
    const [response] = await answered;
    await this.took(response.statusCode ?? 0, JSON.parse(await textOf(response)) as ImportBody, file, mode);
  }
}

function queryOf({ file, mode, dryRun }: Upload): string {
  return `kind=${file.kind}&mode=${mode}&dryRun=${dryRun}`;
}
