import { Injectable } from '@nestjs/common';

/** How far the shutdown of this process is. */
@Injectable()
export class Stopping {
  /** True once load balancers are told to send no requests; requests are still answered as usual. */
  announced = false;
  /** True once no new work begins and the work in progress ends. */
  begun = false;

  begin(): void {
    this.announced = true;
    this.begun = true;
  }
}
