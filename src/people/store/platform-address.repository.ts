import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { operationAddress } from '../../platform/contract/addresses.js';
import { Contract } from '../../platform/contract/contract.js';
import type { Operation } from '../model/person.js';

/**
 * Where user management has been seen to work. Only there does a 404 tell that somebody is gone: under a wrong base URL,
 * path or version everybody seems to be.
 */
@Injectable()
export class PlatformAddressRepository {
  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
  ) {}

  /** Records that an operation was done. */
  async worked(tx: PoolClient, operation: Operation): Promise<void> {
    await tx.query('INSERT INTO platform_addresses (address) VALUES ($1) ON CONFLICT DO NOTHING', [
      this.addressOf(operation),
    ]);
  }

  /** Whether anything was ever done where this operation lives. */
  async isKnown(tx: PoolClient, operation: Operation): Promise<boolean> {
    const { rowCount } = await tx.query('SELECT 1 FROM platform_addresses WHERE address = $1', [
      this.addressOf(operation),
    ]);
    return rowCount !== 0;
  }

  private addressOf(operation: Operation): string {
    return operationAddress(this.contract, this.env.PLATFORM_BASE_URL, operation);
  }
}
