import { toJsonSchema } from '@valibot/to-json-schema';
import { contractSchema } from './contract-schema.js';

/**
 * The JSON Schema of the contract file, for editors. It accepts every file that the service accepts, and a few more:
 * rules that are functions, and rules between settings, are checked only by `notebridge contract check`.
 */
export function contractJsonSchema(): object {
  const title = 'The contract file of notebridge, which PLATFORM_CONTRACT names';
  const options = { target: 'draft-2020-12', typeMode: 'output', errorMode: 'ignore' } as const;
  return { title, ...toJsonSchema(contractSchema({}), options) };
}
