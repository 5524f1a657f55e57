import { Injectable } from '@nestjs/common';

/** The progress of this process's shutdown. */
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
