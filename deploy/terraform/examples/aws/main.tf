# The module with a managed PostgreSQL of AWS. Other providers differ only in the resource of the database.
variable "password" {
  description = "Password of the administrator of the database."
  type        = string
  sensitive   = true
}

resource "aws_db_instance" "horai" {
  identifier                = "horai"
  engine                    = "postgres"
  engine_version            = "17"
  instance_class            = "db.m7g.large"
  allocated_storage         = 100
  storage_encrypted         = true
  multi_az                  = true
  backup_retention_period   = 14
  deletion_protection       = true
  final_snapshot_identifier = "horai-final"
  username                  = "postgres"
  password                  = var.password
}

provider "postgresql" {
  host      = aws_db_instance.horai.address
  username  = aws_db_instance.horai.username
  password  = var.password
  sslmode   = "require"
  superuser = false
}

module "horai" {
  source          = "../.."
  database        = { host = aws_db_instance.horai.address }
  image           = { repository = "horai", tag = "0.1.0" }
  public_url      = "https://horai.example.com"
  trusted_proxies = ["10.0.0.0/8"]
}
