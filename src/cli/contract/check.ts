import 'reflect-metadata';
import { existsSync, readFileSync } from 'node:fs';
import { capabilitiesOf } from '../../platform/contract/capabilities.js';
import type { Contract } from '../../platform/contract/contract.js';
import { checkContract, faultLine, readContractText } from '../../platform/contract/contract-file.js';
import { OPERATION_NAMES, type OperationName } from '../../platform/contract/operations.js';
import { CliFault } from '../api/cli-fault.js';
import { readClientEnv } from '../api/client-env.js';
import { type AnswerReading, readAnswer, readingLines } from './answer-reading.js';

interface CheckOptions {
  sample?: string;
  operation?: OperationName;
  json?: boolean;
}

/** `notebridge contract check`: exits 2 if the file or the sample has faults. */
export async function check(file: string | undefined, { sample, operation, json }: CheckOptions): Promise<void> {
  if (existsSync('.env')) process.loadEnvFile('.env');
  const env = readClientEnv();
  const name = file ?? env.contract;
  if (name === undefined) throw new CliFault('The contract file is missing. Pass it, or set PLATFORM_CONTRACT.');
  const { faults, contract } = checkContract(readContractText(name));
  const readings = contract && sample ? await readSample(contract, sample, operation) : [];
  const capabilities = contract ? capabilitiesOf(contract, env) : [];
  const isUnreadable = readings.length > 0 && readings.every(({ fault }) => fault !== undefined);
  if (!contract || isUnreadable) process.exitCode = 2;
  if (json) return console.log(JSON.stringify({ file: name, faults, capabilities, readings }, null, 2));
  for (const fault of faults) console.log(`✗ ${faultLine(fault)}.`);
  if (faults.length === 0) console.log(`✓ ${name} has no faults.`);
  for (const { name: capability, on, missing } of capabilities)
    console.log(on ? `✓ ${capability}` : `– ${capability} is off: set ${missing.join(', ')}`);
  for (const reading of readings) console.log(readingLines(reading));
}

/** Reads a sample as the answer to one operation, or, if none is named, to each whose answers are read. */
async function readSample(contract: Contract, file: string, operation?: OperationName): Promise<AnswerReading[]> {
  let body: unknown;
  try {
    body = JSON.parse(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CliFault(code ? `${file} cannot be read (${code}).` : `${file} is not JSON.`);
  }
  const isRead = (name: OperationName) => Object.keys(contract.operations[name].response).length > 0;
  const operations = operation ? [operation] : OPERATION_NAMES.filter(isRead);
  return Promise.all(operations.map((each) => readAnswer(contract, each, body)));
}
