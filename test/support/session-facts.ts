import { Random } from '../../src/config/random.js';
import { NO_FACTS, type SessionFacts, type SessionOwner } from '../../src/sessions/model/session-facts.js';
import { SessionSeal } from '../../src/sessions/model/session-seal.js';
import { parseDataKeys } from '../../src/vault/data-keys.js';
import { Vault } from '../../src/vault/vault.js';
import { testSettings } from './app.js';

/** The column `facts` of a session that a test stores by itself. @param id ours */
export function sealedFacts(id: string, owner: Partial<SessionOwner>, facts: Partial<SessionFacts> = {}): Buffer {
  const keys = parseDataKeys([testSettings('').DATA_KEYS ?? '']);
  const seal = new SessionSeal(new Vault(keys, Buffer.alloc(32), new Random())).facts;
  const nobody = { session_id: null, provider_user_id: null, client_user_ids: [] };
  return seal.seal(id, { ...nobody, ...owner }, { ...NO_FACTS, ...facts });
}
