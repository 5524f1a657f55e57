import { Audit } from '../../src/access/audit/audit.js';
import { AuditRepository } from '../../src/access/audit/audit.repository.js';
import { Clock } from '../../src/config/clock.js';
import { Random } from '../../src/config/random.js';
import type { Database } from '../../src/database/database.js';
import { Vault } from '../../src/vault/vault.js';

/** A vault of keys that are the same in every test. */
export const testVault = () => new Vault([{ id: 'k', key: Buffer.alloc(32, 1) }], Buffer.alloc(32, 2), new Random());

/** The audit trail of a database of a test's own. */
export const auditOf = (database: Database) =>
  new Audit(database, new AuditRepository(database), testVault(), new Clock());
