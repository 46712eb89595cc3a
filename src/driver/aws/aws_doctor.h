#pragma once
/* aws_doctor - could a run of engine aws.ec2 start with these credentials, in this region? */

struct checkup;

void aws_doctor(struct checkup *c);
