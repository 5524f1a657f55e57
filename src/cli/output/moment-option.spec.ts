import { Command } from 'commander';
import { momentOption } from './moment-option.js';

const parsed = (given: string) => {
  let refusal = '';
  const command = new Command()
    .exitOverride()
    .configureOutput({ writeErr: (text) => (refusal += text) })
    .addOption(momentOption('--since <moment>', 'since'));
  try {
    return command.parse(['--since', given], { from: 'user' }).opts();
  } catch {
    return refusal;
  }
};

test.each(['2026-01-31', '2026-01-31T08:00:00Z'])('accepts %s', (moment) => {
  expect(parsed(moment)).toEqual({ since: moment });
});

test.each(['yesterday', '2026-02-31', ''])('rejects %j, and names the option', (text) => {
  expect(parsed(text)).toMatch(/'--since <moment>' argument '.*' is invalid\. It must be a date such as 2026-01-31/);
});
