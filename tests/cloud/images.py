"""The machine images of this cloud, and the public parameters that name the newest of each.

All of them boot the same Debian root here; what differs is what a launcher looks at: owner, name, size, parameter.
"""
AMAZON, ECS, CANONICAL, DEBIAN, DEEP_LEARNING = "137112412989", "591542846629", "099720109477", "136693071363", "898082745236"


class Image:
    def __init__(self, number, name, owner, device, size_gb, parameters, created="2026-06-01T00:00:00.000Z", architecture="x86_64"):
        self.id, self.name, self.owner, self.device, self.size_gb = f"ami-{number:017x}", name, owner, device, size_gb
        self.parameters, self.created, self.architecture = parameters, created, architecture

    def for_moto(self):
        return {"ami_id": self.id, "name": self.name, "description": self.name, "owner_id": self.owner, "public": True,
                "virtualization_type": "hvm", "architecture": self.architecture, "state": "available", "platform": None,
                "image_type": "machine", "hypervisor": "xen", "root_device_name": self.device, "root_device_type": "ebs",
                "sriov": "simple", "creation_date": self.created,
                "owner_alias": "amazon" if self.owner in (AMAZON, ECS, DEEP_LEARNING) else None}


IMAGES = [
    Image(0xa1, "al2023-ami-2023.7.20260601.0-kernel-6.1-x86_64", AMAZON, "/dev/xvda", 8,
          ["/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64",
           "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-6.1-x86_64"]),
    Image(0xa0, "al2023-ami-2023.6.20250101.0-kernel-6.1-x86_64", AMAZON, "/dev/xvda", 8, [], "2025-01-01T00:00:00.000Z"),
    Image(0xe1, "al2023-ami-ecs-hvm-2023.0.20260601-kernel-6.1-x86_64", ECS, "/dev/xvda", 30,
          ["/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_id"]),
    Image(0xe2, "al2023-ami-ecs-gpu-hvm-2023.0.20260601-kernel-6.1-x86_64", ECS, "/dev/xvda", 30,
          ["/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id"]),
    Image(0xb1, "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20260601", CANONICAL, "/dev/sda1", 8,
          ["/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
           "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp2/ami-id"]),
    Image(0xd1, "debian-12-amd64-20260601-2000", DEBIAN, "/dev/xvda", 8,
          ["/aws/service/debian/release/12/latest/amd64", "/aws/service/debian/daily/bookworm/latest/amd64"]),
    Image(0xc1, "Deep Learning Base OSS Nvidia Driver GPU AMI (Amazon Linux 2023) 20260601", DEEP_LEARNING, "/dev/xvda", 75,
          ["/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-al2023/latest/ami-id",
           "/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.7-amazon-linux-2023/latest/ami-id"]),
]
BY_ID = {image.id: image for image in IMAGES}
PARAMETERS = {name: image.id for image in IMAGES for name in image.parameters}
# The older form of the same parameters: a JSON document.
PARAMETERS.update({name.removesuffix("/image_id"): '{"image_id": "%s"}' % number
                   for name, number in PARAMETERS.items() if name.endswith("/image_id")})
DEFAULT = IMAGES[0].id
