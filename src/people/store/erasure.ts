import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core';
import type { PoolClient } from 'pg';
import { Audit } from '../../access/audit/audit.js';
import type { PersonKey } from '../model/profile.js';
import type { PersonRow } from './person-row.js';
import { usersOf } from './person-users.js';

/** A person that was deleted, whose own row holds no names and no email any more. */
export interface ErasedPerson extends PersonKey {
  /** All users of the platform that the person is or was. */
  platformUserIds: string[];
}

/** What went: the number of rows, and of sessions our ids. */
export interface ErasedCopies {
  rows: number;
  sessions?: string[];
}

/** Removes copies in the transaction of the deletion, again where it runs again. */
type EraseCopies = (tx: PoolClient, person: ErasedPerson) => Promise<ErasedCopies>;

/** Marks a method `EraseCopies` of a feature that keeps copies, by the name that the audit trail gives them. */
export const ErasesCopies = Reflector.createDecorator<string>();

/** Has every feature that declared `@ErasesCopies()` remove what it keeps of a deleted person. */
@Injectable()
export class Erasure implements OnModuleInit {
  private copies: { name: string; erase: EraseCopies }[] = [];

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly reflector: Reflector,
    private readonly audit: Audit,
  ) {}

  onModuleInit(): void {
    this.copies = this.discovery.getProviders().flatMap(({ instance }) => this.copiesOf(instance));
  }

  /**
   * Removes the copies of a locked person, and records what went.
   *
   * @param names whether names and email of its own row go with it
   */
  async erase(tx: PoolClient, { kind, externalId }: PersonRow, { names }: { names: boolean }): Promise<void> {
    const person = { kind, externalId, platformUserIds: await usersOf(tx, { kind, externalId }) };
    const erased = names ? ['names and email'] : [];
    const session: string[] = [];
    for (const { name, erase } of this.copies) {
      const copies = await erase(tx, person);
      if (copies.rows > 0) erased.push(`${copies.rows} ${name}`);
      if (copies.rows > 0) session.push(...(copies.sessions ?? []));
    }
    if (erased.length === 0) return;
    await this.audit.system('erasure', { [kind]: [externalId], session }, erased.join(', '), tx);
  }

  private copiesOf(instance: unknown): typeof this.copies {
    const prototype: unknown = typeof instance === 'object' && instance !== null && Object.getPrototypeOf(instance);
    if (!prototype) return [];
    const methods = instance as Record<string, EraseCopies>;
    return this.scanner.getAllMethodNames(prototype).flatMap((method) => {
      const erase = methods[method] as EraseCopies;
      const name = this.reflector.get(ErasesCopies, erase) as string | undefined;
      return name ? [{ name, erase: erase.bind(instance) }] : [];
    });
  }
}
