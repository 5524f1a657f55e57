import { InvalidArgumentError, Option } from 'commander';
import { isMoment, NOT_A_MOMENT } from '../../text/moment.js';

/** An option whose value must be a date or a time; an error names the option. @param flags such as `--since <moment>` */
export function momentOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser((text: string) => {
    if (!isMoment(text)) throw new InvalidArgumentError(`It ${NOT_A_MOMENT}.`);
    return text;
  });
}
