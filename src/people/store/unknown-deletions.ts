import { Injectable } from '@nestjs/common';
import type { PersonKey } from '../rules/profile.js';

/**
 * Deletions of ids that the EHR never named. An import that is being read may name them, and would bring the person back.
 * Imports register themselves, because this folder must not import theirs.
 */
@Injectable()
export class UnknownDeletions {
  private handle: (key: PersonKey) => Promise<void> = async () => undefined;

  register(handle: (key: PersonKey) => Promise<void>): void {
    this.handle = handle;
  }

  deleted(key: PersonKey): Promise<void> {
    return this.handle(key);
  }
}
