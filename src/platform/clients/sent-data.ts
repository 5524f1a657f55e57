import { Injectable } from '@nestjs/common';
import { Audit, BEGUN } from '../../audit/audit.js';
import { PlatformError, type PlatformErrorKind } from '../contract/platform-errors.js';

/** The outcome of a second entry, if nothing was sent after all. */
export const NOT_SENT = 'not-sent';

const UNSENT: PlatformErrorKind[] = ['unreachable', 'held', 'not-configured'];

/** The action of the audit entries about calls that send data to the platform. */
export const sendingOf = (operation: string): string => `platform.${operation}`;

/** Records what is sent to the platform, because the accounting of a client's disclosures reads only the audit log. */
@Injectable()
export class SentData {
  constructor(private readonly audit: Audit) {}

  /** Commits the entry, then sends: a crash in between lists a call that was not sent, and never misses one that was. */
  async send<T>(operation: string, about: Parameters<Audit['system']>[1], call: () => Promise<T>): Promise<T> {
    const action = sendingOf(operation);
    await this.audit.system(action, about, BEGUN);
    return call().catch(async (error: unknown) => {
      const isUnsent = error instanceof PlatformError && UNSENT.includes(error.kind);
      // Without the second entry, the call counts as sent.
      if (isUnsent) await this.audit.system(action, about, NOT_SENT).catch(() => undefined);
      throw error;
    });
  }
}
