import { InvalidArgumentError, Option } from 'commander';
import { isMoment, NOT_A_MOMENT } from '../../http/request/moment.js';

/** An option that takes a moment, refused by its own name where it is none. @param flags such as `--since <moment>` */
export function momentOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser((text: string) => {
    if (!isMoment(text)) throw new InvalidArgumentError(`It ${NOT_A_MOMENT}.`);
    return text;
  });
}
